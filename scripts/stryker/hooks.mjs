// Hooks of Node's module loader, by which the domain's tests get this folder's runner and properties.
const REPLACED = new Map([
  ["@jest/globals", new URL("./test-globals.mjs", import.meta.url).href],
  ["fast-check", new URL("./fast-check.mjs", import.meta.url).href],
]);

export function resolve(specifier, context, nextResolve) {
  const url = REPLACED.get(specifier);
  if (url !== undefined && context.parentURL !== url) return { url, shortCircuit: true };
  return nextResolve(specifier, context);
}
