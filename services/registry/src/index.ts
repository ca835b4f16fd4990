export { createApp } from "./app.ts";
export { REGISTRY_KEYS, type RegistryConfig } from "./config.ts";
export { checkJoinConfig } from "./join-keys.ts";
export type { RegistryProcess } from "./registry-process.ts";
