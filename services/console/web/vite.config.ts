import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Where a page in development passes its calls: a `rollcall up`, and an access token that stands for a sign-in. */
const SERVER = process.env.ROLLCALL_SERVER ?? "http://127.0.0.1:7700";
const TOKEN = process.env.ROLLCALL_TOKEN;

export default defineConfig({
  plugins: [react()],
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
