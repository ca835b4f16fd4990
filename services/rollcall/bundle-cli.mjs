// Bundles the command line into one script, cli.cjs, and start.cjs, which starts it or the servers' program; see
// docs/decisions/0065-one-script.md.
import { build } from "esbuild";
import { whenUsed } from "./when-used.mjs";

/** Parts of Node.js that take milliseconds to load, and that most verbs never use. */
const HEAVY = ["child_process", "crypto", "dns", "http", "http2", "https", "net", "readline", "tls", "zlib"];
const BUILTINS_WHEN_USED = whenUsed("builtins-when-used", new RegExp(`^(node:)?(${HEAVY.join("|")})(/|$)`));

/**
 * The rules of fields are the servers' to check. Their descriptor, a file by itself that every schema imports, takes as
 * long to read as a service's.
 */
const WITHOUT_RULES = {
  name: "without-rules",
  setup: ({ onLoad }) => {
    const name = "buf/validate/validate.proto";
    // An empty file of this name, as protobuf writes it.
    const descriptor = Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name)]).toString("base64");
    onLoad({ filter: /\/buf\/validate\/validate_pb\.ts$/ }, () => ({
      contents: `import { fileDesc } from "@bufbuild/protobuf/codegenv2";
        export const file_buf_validate_validate = fileDesc("${descriptor}");`,
      loader: "ts",
    }));
  },
};

/** What start.ts leaves to the servers' program. */
const WITHOUT_SERVERS = {
  name: "without-servers",
  setup: ({ onResolve, onLoad }) => {
    const importers = /\/services\/rollcall\/src\/(server-verbs?|config\/configuration-view)\.ts$/;
    onResolve({ filter: /.*/ }, ({ kind, importer, path }) =>
      kind === "dynamic-import" && importers.test(importer) ? { path, namespace: "without-servers" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "without-servers" }, ({ path }) => ({
      contents: `throw new Error("the command line by itself is without ${path}");`,
    }));
  },
};

/** Write both into a folder that has the servers' program. Answers the files that went into them. */
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
    // V8 keeps text of one byte per character in half the memory. NOTICES.txt has the licences.
    charset: "ascii",
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
