export type { LoginIssuer } from "./access/login-issuer.ts";
export { type AdminApp, createApp } from "./app.ts";
export { ADMIN_KEYS, type AdminConfig } from "./config.ts";
export type { AdminDeps } from "./deps.ts";
export {
  type AdminTokenPlace,
  type AdminTokenSource,
  ensureAdminToken,
} from "./ensure-admin-token.ts";
