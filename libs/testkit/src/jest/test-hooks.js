// Hooks of Node's module loader for test files, beside those of source-loader.js: packages of the workspace are read
// from their sources, and @jest/globals is this folder's.

const GLOBALS = new URL("./test-globals.js", import.meta.url).href;

export async function resolve(specifier, context, nextResolve) {
  if (specifier === "@jest/globals") return { url: GLOBALS, shortCircuit: true };
  return nextResolve(specifier, { ...context, conditions: [...context.conditions, "source"] });
}
