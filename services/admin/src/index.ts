export { type AdminTokenPlace, ensureAdminToken } from "./access/ensure-admin-token.ts";
export type { LoginIssuer } from "./admin-services.ts";
export { createApp } from "./app.ts";
export { ADMIN_KEYS, type AdminConfig } from "./config.ts";
