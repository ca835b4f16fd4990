// Bundles two scripts: cli.cjs, the command line, and start.cjs, which starts the command line or the servers'
// program. See docs/decisions/0065-one-script.md.
import { build } from "esbuild";
import { whenUsed } from "./when-used.mjs";

/** Node.js modules that take milliseconds to load and that most verbs never use. */
const HEAVY = ["child_process", "crypto", "dns", "http", "http2", "https", "net", "readline", "tls", "zlib"];
const BUILTINS_WHEN_USED = whenUsed("builtins-when-used", new RegExp(`^(node:)?(${HEAVY.join("|")})(/|$)`));

/**
 * Leave out the descriptor of validation rules, because only servers check them. Every schema imports this separate
 * file, and reading it takes as long as reading a whole service.
 */
const WITHOUT_RULES = {
  name: "without-rules",
  setup: ({ onLoad }) => {
    const name = "buf/validate/validate.proto";
    // An empty file descriptor with this name, as protobuf encodes it.
    const descriptor = Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)]).toString("base64");
    onLoad({ filter: /\/buf\/validate\/validate_pb\.ts$/ }, () => ({
      contents: `import { fileDesc } from "@bufbuild/protobuf/codegenv2";
        export const file_buf_validate_validate = fileDesc("${descriptor}");`,
      loader: "ts",
    }));
  },
};

/**
 * Leave out the modules that only the servers' program needs. For verbs that need these modules, start.ts starts the
 * servers' program instead.
 */
const WITHOUT_SERVERS = {
  name: "without-servers",
  setup: ({ onResolve, onLoad }) => {
    const importers = /\/services\/rollcall\/src\/(server-verbs?|config\/configuration-view)\.ts$/;
    onResolve({ filter: /.*/ }, ({ kind, importer, path }) =>
      kind === "dynamic-import" && importers.test(importer) ? { path, namespace: "without-servers" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "without-servers" }, ({ path }) => ({
      contents: `throw new Error("the bundle of the command line does not contain ${path}");`,
    }));
  },
};

/** Write both scripts into the folder of the servers' program. Returns the input files. */
export async function bundleCli(folder, { entry, start, workspace, plugins }) {
  const options = {
    outdir: folder,
    outExtension: { ".js": ".cjs" },
    absWorkingDir: workspace,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    conditions: ["source"],
    // Escape non-ASCII characters, because V8 needs half the memory for text with one byte per character.
    charset: "ascii",
    // The licenses are in NOTICES.txt.
    legalComments: "none",
    sourcemap: "linked",
    sourcesContent: false,
    metafile: true,
    logLevel: "warning",
  };
  const cli = await build({
    ...options,
    entryPoints: [{ in: entry, out: "cli" }],
    define: { "import.meta.url": "urlOfBundle" },
    banner: { js: 'const urlOfBundle = require("node:url").pathToFileURL(__filename).href;' },
    plugins: [WITHOUT_SERVERS, WITHOUT_RULES, BUILTINS_WHEN_USED, ...plugins],
  });
  const starter = await build({ ...options, entryPoints: [{ in: start, out: "start" }] });
  return [cli, starter].flatMap(({ metafile }) => Object.keys(metafile.inputs)).filter((it) => !/^[a-z-]+:/.test(it));
}
