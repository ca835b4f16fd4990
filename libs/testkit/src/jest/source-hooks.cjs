// Has Node.js load the workspace's packages from their sources, whose types it strips, and @jest/globals from this
// folder. What it compiles is cached, so that a second run loads a package in half the time.
const { enableCompileCache, registerHooks } = require("node:module");
const { tmpdir, userInfo } = require("node:os");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");

const GLOBALS = pathToFileURL(join(__dirname, "test-globals.js")).href;

enableCompileCache(join(tmpdir(), `rollcall-compiled-${userInfo().uid}`));
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier === "@jest/globals") return { url: GLOBALS, shortCircuit: true };
    return nextResolve(specifier, { ...context, conditions: [...context.conditions, "source"] });
  },
});
