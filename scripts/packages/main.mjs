// Makes every package from this checkout, in dist/ or in the given folder:
//   node scripts/packages/main.mjs [--out DIR] [--platform linux-x64,linux-arm64] [--images none]
// It makes container images as well if the machine has the tools; `--images` names their platforms. Nothing in the
// packages depends on the machine, the time or the folder, so two builds of one commit have the same bytes.
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { commitInfo } from "../../services/rollcall/commit-info.mjs";
import { writeTarGz } from "./archive.mjs";
import { writeChart } from "./chart.mjs";
import { writeDeb } from "./deb.mjs";
import { makeImage, missingTools } from "./images.mjs";
import { askProgram, manualOf } from "./manual.mjs";
import { writeNpm } from "./npm.mjs";
import { layOutPrefix } from "./prefix-tree.mjs";
import { buildProgram, KINDS } from "./program.mjs";
import { mapBounded, run } from "./run.mjs";
import { sbomOf } from "./sbom.mjs";
import { writeSums } from "./sums.mjs";
import { lockedIntegrity, PLATFORMS, POSTGRES_PACKAGES, VERSION, WORKSPACE } from "./workspace.mjs";

const SHELLS = ["bash", "zsh", "fish"];
const CACHE = join(WORKSPACE, "node_modules/.cache/rollcall-packages");
/** The folder in which packages are laid out. It is always the same; see buildProgram(). */
const STAGE = join(WORKSPACE, "node_modules/.cache/rollcall-dist");

const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(WORKSPACE, "dist") },
    platform: { type: "string", default: Object.keys(PLATFORMS).join(",") },
    images: { type: "string" },
  },
});
const out = resolve(values.out);
const platforms = values.platform.split(",");
const images = imagePlatforms();
const unknown = [...platforms, ...images].filter((platform) => !(platform in PLATFORMS));
if (unknown.length > 0)
  throw new Error(`no packages for ${unknown.join(", ")}; for ${Object.keys(PLATFORMS).join(", ")}`);
const commit = commitInfo(WORKSPACE);
const timeS = Math.floor(Date.parse(commit.commitTime ?? "2026-01-01T00:00:00Z") / 1000);

await rm(out, { recursive: true, force: true });
await rm(STAGE, { recursive: true, force: true });
await mkdir(out, { recursive: true });

/** The help texts, keyed by command. */
const helps = new Map();

const built = await mapBounded(Object.keys(KINDS), 1, async (kind) => {
  const program = await buildProgram(kind, { stage: join(STAGE, "programs"), info: commit });
  return { kind, program, words: await wordsOf(program) };
});
const packages = built.flatMap((one) => platforms.map((platform) => ({ ...one, platform })));
const made = await mapBounded(packages, Math.min(2, availableParallelism()), makePackages);
await mapBounded(
  made.filter(({ kind, platform }) => kind === "rollcall" && images.includes(platform)),
  1,
  addImage,
);
await makeNpm(built.find(({ kind }) => kind === "rollcall").program);
say((await writeChart(out, { version: VERSION, timeS, work: join(STAGE, "chart") })).join(" and "));
const listed = await writeSums(out);
say(`${relative(process.cwd(), out) || "."}/SHA256SUMS lists ${listed} files`);

/** Return the platforms of images. They are the platforms that the flag names, or all platforms of packages. */
function imagePlatforms() {
  if (values.images !== undefined) return values.images === "none" ? [] : values.images.split(",");
  const missing = missingTools();
  if (missing.length === 0) return platforms;
  say(`no container images: ${missing.join(", ")} not installed`);
  return [];
}

/** Make the man page and the completions from what the program prints. */
async function wordsOf({ folder }) {
  const main = join(folder, "src/main.js");
  const manual = await manualOf({ ask: askProgram(process.execPath, main, helps), version: VERSION, timeS });
  const scripts = await mapBounded(SHELLS, 1, async (shell) => [
    shell,
    await run(process.execPath, [main, "completion", shell]),
  ]);
  return { manual, completions: Object.fromEntries(scripts) };
}

async function makePackages({ kind, platform, program, words }) {
  const name = `${kind}-${VERSION}-${platform}`;
  const folder = join(STAGE, "trees", name);
  const info = { ...commit, build: `${kind}-${platform}` };
  const added = await layOutPrefix(folder, { kind, platform, program, words, version: VERSION, info, cache: CACHE });
  const components = [...added, ...program.packages];
  const sbom = sbomOf({ name: kind, version: VERSION, commit: commit.commit, timeS, components });
  await writeFile(join(out, `${name}.cdx.json`), sbom);
  await writeFile(join(folder, "share/doc/rollcall/sbom.cdx.json"), sbom);
  const deb = `${kind}_${VERSION}_${PLATFORMS[platform]}.deb`;
  await writeDeb(join(out, deb), {
    kind,
    platform,
    prefix: folder,
    version: VERSION,
    timeS,
    work: join(STAGE, "debs", name),
  });
  for (const file of ["install.sh", "README.md"]) await cp(join(WORKSPACE, "deploy/package", file), join(folder, file));
  // join.sh installs these on machines without dpkg.
  for (const file of ["systemd/rollcall-agent.service", "systemd/rollcall-keeper.service", "config/agent.yaml"]) {
    await cp(join(WORKSPACE, "deploy", file), join(folder, file));
  }
  await cp(join(WORKSPACE, "LICENSE"), join(folder, "LICENSE"));
  const tarball = join(out, `${name}.tar.gz`);
  await writeTarGz(tarball, { folder: join(STAGE, "trees"), entries: [name], timeS });
  say(`${deb} and ${name}.tar.gz`);
  return { kind, platform, components };
}

async function addImage({ platform, components }) {
  const work = join(STAGE, "images", platform);
  const names = await makeImage({ out, platform, components, commit: commit.commit, timeS, work });
  say(names.join(" and "));
}

async function makeNpm(program) {
  const name = `rollcall-${VERSION}`;
  const info = { ...commit, build: "npm" };
  const optional = Object.entries(POSTGRES_PACKAGES).map(([package_, version]) => ({
    name: package_,
    version,
    license: "PostgreSQL",
    integrity: lockedIntegrity(package_, version),
    type: "platform",
  }));
  await writeNpm(join(out, `${name}.tgz`), { program, version: VERSION, info, timeS, work: join(STAGE, "npm") });
  const components = [...optional, ...program.packages];
  await writeFile(
    join(out, `${name}.cdx.json`),
    sbomOf({ name: "rollcall", version: VERSION, commit: commit.commit, timeS, components }),
  );
  say(`${name}.tgz`);
}

function say(text) {
  process.stdout.write(`${text}\n`);
}
