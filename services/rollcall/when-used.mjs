import { createRequire } from "node:module";
import { join } from "node:path";

/**
 * A plugin of esbuild: modules in CommonJS, and parts of Node.js, whose specifiers match are loaded by the first use of
 * a name of theirs. In place of each there is an object with the same names.
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
          let module_;
          const used = (name) => (module_ ??= require(${JSON.stringify(path)}))[name];
          for (const name of ${JSON.stringify(names)})
            Object.defineProperty(module.exports, name, { enumerable: true, get: () => used(name) });`;
        return { contents, loader: "js", resolveDir };
      });
    },
  };
}
