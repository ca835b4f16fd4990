/**
 * The part of its registration that an agent stores, so that it can open its stream immediately after a restart. It is
 * only a shortcut: if it is missing or wrong, the agent registers again.
 */
export interface Sentinel {
  readonly nodeId: string;
  /** Fingerprint of the registered key. */
  readonly keyFingerprint: string;
  readonly clusterId: string;
  /** HOST:PORT of the health replicas; at least one. */
  readonly healthEndpoints: readonly string[];
}

/** Parse a sentinel file; `undefined` if it is invalid or has an older format. */
export function parseSentinel(text: string): Sentinel | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { nodeId, keyFingerprint, clusterId, healthEndpoints } = value as Record<string, unknown>;
  if (
    typeof nodeId !== "string" ||
    typeof keyFingerprint !== "string" ||
    typeof clusterId !== "string" ||
    !Array.isArray(healthEndpoints) ||
    healthEndpoints.length === 0
  ) {
    return undefined;
  }
  const endpoints = healthEndpoints.filter((it): it is string => typeof it === "string");
  if (endpoints.length !== healthEndpoints.length) return undefined;
  return { nodeId, keyFingerprint, clusterId, healthEndpoints: endpoints };
}
