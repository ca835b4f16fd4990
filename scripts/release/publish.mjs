// Publishes a release to its destinations. A dry run does everything that needs no network and no credential.
import { access, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../packages/run.mjs";
import { PLATFORMS, WORKSPACE } from "../packages/workspace.mjs";
import { toolPath } from "../render-manifests.mjs";

const CACHE = join(WORKSPACE, "node_modules/.cache/rollcall-sdk");
const TWINE = "twine==7.0.0";

/**
 * The destinations, keyed by name. Each publishes the files of `version` in `dist`, or only checks them if `dryRun`
 * is set. Returns the result as one line. `image` is a repository for images, for example
 * registry.example.com/rollcall.
 */
export const DESTINATIONS = { npm: publishNpm, pypi: publishPython, maven: publishJava, oci: publishImages };

async function publishNpm({ dist, version, dryRun }) {
  const packages = [
    ["rollcall", join(dist, `rollcall-${version}.tgz`)],
    ["@rollcall/client", join(dist, `sdk/rollcall-client-${version}.tgz`)],
  ];
  const options = ["--access", "public", "--tag", version.includes("-") ? "next" : "latest"];
  for (const [, file] of packages)
    await run("npm", ["publish", file, ...options, ...(dryRun ? ["--dry-run"] : [])], { cwd: dist });
  return packages.map(([name]) => `${name}@${version}`).join(" and ");
}

async function publishPython({ dist, dryRun }) {
  const wheels = (await readdir(join(dist, "sdk"))).filter((name) => name.endsWith(".whl"));
  const files = wheels.map((name) => join(dist, "sdk", name));
  const tools = join(CACHE, "twine");
  await run("python3", ["-m", "venv", tools]);
  const python = join(tools, "bin/python");
  await run(python, ["-m", "pip", "install", "--quiet", TWINE]);
  await run(python, ["-m", "twine", "check", "--strict", ...files]);
  if (!dryRun) await run(python, ["-m", "twine", "upload", "--non-interactive", "--skip-existing", ...files]);
  return wheels.join(", ");
}

async function publishJava({ dist, version, dryRun, key }) {
  await access(join(dist, `sdk/rollcall-client-${version}.jar`));
  const signing = key === undefined ? "-Dgpg.skip" : `-Dgpg.keyname=${key}`;
  const goal = dryRun ? ["verify"] : ["-DautoPublish=true", "-DwaitUntil=published", "deploy"];
  const options = ["--batch-mode", "--quiet", "--no-transfer-progress", "-Prelease", "-DskipTests", signing];
  await run("mvn", [...options, ...goal], { cwd: join(CACHE, "java") });
  return `dev.rollcall:rollcall-client:${version}`;
}

/** Publish one image for all platforms, and the packed chart. */
async function publishImages({ dist, version, dryRun, image }) {
  const list = `rollcall-release-${version}`;
  const folder = await mkdtemp(join(tmpdir(), "rollcall-images-"));
  try {
    await run("buildah", ["manifest", "create", list]);
    for (const platform of Object.keys(PLATFORMS))
      await run("buildah", [
        "manifest",
        "add",
        list,
        `oci-archive:${join(dist, `rollcall-${version}-${platform}.oci.tar`)}`,
      ]);
    const target = dryRun ? `oci:${join(folder, "image")}` : `docker://${image}:${version}`;
    await run("buildah", ["manifest", "push", "--all", list, target]);
    const chart = join(dist, `rollcall-chart-${version}.tgz`);
    if (dryRun) await run(toolPath("helm"), ["show", "chart", chart]);
    else await run(toolPath("helm"), ["push", chart, `oci://${image}-chart`]);
  } finally {
    await run("buildah", ["manifest", "rm", list]).catch(() => undefined);
    await rm(folder, { recursive: true, force: true });
  }
  return `${image ?? "rollcall"}:${version} for ${Object.keys(PLATFORMS).join(" and ")}, and the chart`;
}
