import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/**
 * Where pages in development send their calls: to a `rollcall up`, with an access token instead of a sign-in.
 */
const SERVER = process.env.ROLLCALL_SERVER ?? "http://127.0.0.1:7700";
const TOKEN = process.env.ROLLCALL_TOKEN;

/**
 * Pages leave validation to the server. The descriptors of validation rules are large, and pages would load them
 * first. Replace them with an empty file descriptor of the same name, which is all that the API's descriptors
 * import.
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
  // Import the workspace's packages from their sources, as everywhere else.
  resolve: { conditions: ["source", "module", "browser", "development|production"] },
  // The server replaces this placeholder with a new nonce in each response.
  html: { cspNonce: "__CSP_NONCE__" },
  build: {
    target: "es2022",
    // Do not inline fonts and pictures, which would need a less strict content security policy.
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
