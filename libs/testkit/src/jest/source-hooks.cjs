// Make Node.js load the workspace's packages from their TypeScript sources, whose types it strips, and
// @jest/globals from this folder. Compiled code is cached, so a second run loads a package in half the time.
const { createRequire, enableCompileCache, registerHooks } = require("node:module");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { fileURLToPath, pathToFileURL } = require("node:url");

const GLOBALS = pathToFileURL(join(__dirname, "test-globals.js")).href;
const WORKSPACE = join(__dirname, "../../../..");
// The directory for compiled code. It is not a directory for temporary files, because cached code is
// executed, and another user could plant code in a temporary directory.
const CACHE = join(WORKSPACE, "node_modules/.cache/rollcall-compiled");

// Do not cache during coverage, because V8 reports no branches of code that it has read from a cache.
if (process.env.NODE_V8_COVERAGE === undefined) enableCompileCache(CACHE);
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier === "@jest/globals") return { url: GLOBALS, shortCircuit: true };
    return nextResolve(specifier, { ...context, conditions: [...context.conditions, "source"] });
  },
  load(url, context, nextLoad) {
    if (url.endsWith(".tsx")) return { format: "module", source: compiledJsx(fileURLToPath(url)), shortCircuit: true };
    if (url.endsWith(".css")) return { format: "module", source: "", shortCircuit: true };
    return nextLoad(url, context);
  },
});

let compiler;

/** Compile the console's components with the compiler that builds its pages: Node.js strips types, but not JSX. */
function compiledJsx(path) {
  compiler ??= loadCompiler();
  const { code, errors } = compiler(path, readFileSync(path, "utf8"), { lang: "tsx", jsx: { runtime: "automatic" } });
  if (errors.length > 0) throw new Error(`${path}: ${errors.map(({ message }) => message).join("; ")}`);
  return code;
}

/** Load the compiler only when a test needs it. It is a dependency of the program that builds the pages. */
function loadCompiler() {
  const builder = createRequire(join(WORKSPACE, "services/console/web/package.json")).resolve("vite");
  return createRequire(builder)("rolldown/utils").transformSync;
}
