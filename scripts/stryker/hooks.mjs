// Hooks for Node's module loader. They replace the test runner and fast-check in the domain's
// tests by those of this folder.
const REPLACED = new Map([
  ["@jest/globals", new URL("./test-globals.mjs", import.meta.url).href],
  ["fast-check", new URL("./fast-check.mjs", import.meta.url).href],
]);

export function resolve(specifier, context, nextResolve) {
  const url = REPLACED.get(specifier);
  if (url !== undefined && context.parentURL !== url) return { url, shortCircuit: true };
  return nextResolve(specifier, context);
}
