// Makes container images from tarballs. deploy/image/build.sh makes them with buildah and libraries from Debian.
import { spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./run.mjs";
import { sbomOf } from "./sbom.mjs";
import { VERSION, WORKSPACE } from "./workspace.mjs";

const TOOLS = ["buildah", "apt-get", "dpkg-deb"];

/** List the image tools that are missing on this machine. */
export function missingTools() {
  return TOOLS.filter((tool) => spawnSync(tool, ["--version"]).status !== 0);
}

/**
 * Make the image of a tarball in `out`, as two archives, and the list of its contents: the tarball's `components` and
 * Debian's packages. Returns the names of the archives.
 */
export async function makeImage({ out, platform, components, commit, timeS, work }) {
  const name = `rollcall-${VERSION}-${platform}`;
  await mkdir(work, { recursive: true });
  const list = join(work, "debian-packages.tsv");
  const script = join(WORKSPACE, "deploy/image/build.sh");
  await run(script, [join(out, `${name}.tar.gz`)], { env: { DEBIAN_PACKAGES: list } });
  const ofDebian = (await readFile(list, "utf8")).trim().split("\n").map(toComponent);
  const sbom = sbomOf({ name: "rollcall", version: VERSION, commit, timeS, components: [...components, ...ofDebian] });
  await writeFile(join(out, `${name}.oci.cdx.json`), sbom);
  return [`${name}.oci.tar`, `${name}.docker.tar`];
}

/** Parse a line of the list into a component: name, version, architecture, digest. */
function toComponent(line) {
  const [name, version, architecture, sha512 = ""] = line.split("\t");
  return {
    name,
    version,
    integrity: `sha512-${Buffer.from(sha512, "hex").toString("base64")}`,
    purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}`,
  };
}
