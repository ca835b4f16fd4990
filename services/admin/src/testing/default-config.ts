import { ADMIN_KEYS, type AdminConfig } from "../config.ts";

/** Every key at its default. */
export const DEFAULT_CONFIG = Object.fromEntries(
  Object.entries(ADMIN_KEYS).map(([path, key]) => [path, key.default]),
) as AdminConfig;
