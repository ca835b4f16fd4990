/** The services that `serve` runs. */
export const SERVICE_NAMES = ["registry", "health", "admin"] as const;

/** A service of the control plane. */
export type ServiceName = (typeof SERVICE_NAMES)[number];
