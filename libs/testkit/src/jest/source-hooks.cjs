// Has Node.js load the workspace's packages from their sources, whose types it strips, and @jest/globals from this
// folder. What it compiles is cached, so that a second run loads a package in half the time.
const { enableCompileCache, registerHooks } = require("node:module");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const GLOBALS = pathToFileURL(join(__dirname, "test-globals.js")).href;
// The cached code is executed: another user could plant some in a directory for temporary files.
const CACHE = join(__dirname, "../../../../node_modules/.cache/rollcall-compiled");

// Coverage lacks branches of code that V8 has read from a cache.
if (process.env.NODE_V8_COVERAGE === undefined) enableCompileCache(CACHE);
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier === "@jest/globals") return { url: GLOBALS, shortCircuit: true };
    return nextResolve(specifier, { ...context, conditions: [...context.conditions, "source"] });
  },
});
