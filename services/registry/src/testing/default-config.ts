import { REGISTRY_KEYS, type RegistryConfig } from "../config.ts";

/** Every key at its default. */
export const DEFAULT_CONFIG = Object.fromEntries(
  Object.entries(REGISTRY_KEYS).map(([path, key]) => [path, key.default]),
) as RegistryConfig;
