export {
  type AdminTokenPlace,
  type AdminTokenSource,
  ensureAdminToken,
} from "./access/ensure-admin-token.ts";
export type { AdminServices, LoginIssuer } from "./admin-services.ts";
export { type AdminApp, createApp } from "./app.ts";
export { ADMIN_KEYS, type AdminConfig } from "./config.ts";
