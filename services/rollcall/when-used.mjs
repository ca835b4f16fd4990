import { createRequire } from "node:module";
import { join } from "node:path";

/**
 * An esbuild plugin that loads matching modules lazily. An import gets an object with the same names, whose getters
 * load the module on first use. The plugin works for CommonJS packages and Node.js modules.
 */
export function whenUsed(name, filter) {
  return {
    name,
    setup: ({ onResolve, onLoad }) => {
      onResolve({ filter }, ({ path, kind, resolveDir }) =>
        kind === "import-statement" ? { path, namespace: name, pluginData: { resolveDir } } : undefined,
      );
      onLoad({ filter: /.*/, namespace: name }, ({ path, pluginData: { resolveDir } }) => {
        const names = Object.keys(createRequire(join(resolveDir, "importer.js"))(path));
        const contents = `
          let loaded;
          const used = (name) => (loaded ??= require(${JSON.stringify(path)}))[name];
          for (const name of ${JSON.stringify(names)})
            Object.defineProperty(module.exports, name, { enumerable: true, get: () => used(name) });`;
        return { contents, loader: "js", resolveDir };
      });
    },
  };
}
