/**
 * What an agent remembers of its registration, so that it opens its stream at once the next time. It is a
 * convenience, never a lock: whatever is wrong with it, the agent registers again.
 */
export interface Sentinel {
  readonly nodeId: string;
  /** Fingerprint of the key that was registered. */
  readonly keyFingerprint: string;
  readonly clusterId: string;
  /** HOST:PORT of the health replicas; at least one. */
  readonly healthEndpoints: readonly string[];
}

/** Parse a sentinel file; `undefined` for anything that is not one, an older form included. */
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
