import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Where a page in development passes its calls: a `rollcall up`, and an access token that stands for a sign-in. */
const SERVER = process.env.ROLLCALL_SERVER ?? "http://127.0.0.1:7700";
const TOKEN = process.env.ROLLCALL_TOKEN;

/**
 * Pages validate nothing by rules: the server does. What describes the rules is large, and loaded first; in its place
 * is an empty file of the same name, which the descriptors of the API only import.
 */
const withoutRules: Plugin = {
  name: "without-validation-rules",
  enforce: "pre",
  load: (id) =>
    id.split("?", 1)[0]?.endsWith("/gen/buf/validate/validate_pb.ts")
      ? [
          `import { fileDesc } from "@bufbuild/protobuf/codegenv2";`,
          `export const file_buf_validate_validate = fileDesc("ChtidWYvdmFsaWRhdGUvdmFsaWRhdGUucHJvdG8=");`,
        ].join("\n")
      : null,
};

export default defineConfig({
  plugins: [withoutRules, react()],
  // The workspace's packages are read from their sources, as everywhere.
  resolve: { conditions: ["source", "module", "browser", "development|production"] },
  // The server replaces it with a new nonce in each answer.
  html: { cspNonce: "__CSP_NONCE__" },
  build: {
    target: "es2022",
    // A font or picture as a data: address would need a wider policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "^/(rollcall|grpc)\\.": {
        target: SERVER,
        changeOrigin: true,
        headers: TOKEN === undefined ? {} : { authorization: `Bearer ${TOKEN}` },
      },
    },
  },
});
