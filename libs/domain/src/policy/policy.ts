import { type HealthPolicy, POLICY_FIELD_NAMES, POLICY_FIELDS } from "./policy-fields.ts";

/**
 * The default policy: UNHEALTHY after 1 minute, UNKNOWN after 5 minutes, a heartbeat every 15 s, information every
 * minute, and holds for flapping and for hardware.
 */
export const DEFAULT_HEALTH_POLICY: HealthPolicy = {
  unhealthyAfterMs: 60_000,
  unhealthyAfterMissed: null,
  unknownAfterMs: 300_000,
  unknownAfterMissed: null,
  heartbeatIntervalMs: 15_000,
  infoIntervalMs: 60_000,
  usageIntervalMs: 2_000,
  flappingHoldMs: 600_000,
  hardwareHold: true,
  rebootHoldMs: 0,
  gpuMaxCelsius: null,
  agentMayShorten: false,
};

/** The value of any policy field. */
export type PolicyValue = HealthPolicy[keyof HealthPolicy];

/** The intervals at which an agent reports, in milliseconds. */
export interface Intervals {
  readonly heartbeatMs: number;
  readonly infoMs: number;
  readonly usageMs: number;
}

/** The intervals that an agent's own configuration requests, in milliseconds; null for none. */
export interface Wishes {
  readonly heartbeatMs: number | null;
  readonly infoMs: number | null;
}

export const NO_WISHES: Wishes = { heartbeatMs: null, infoMs: null };

/** Silence after which the detector declares a node UNHEALTHY or UNKNOWN, in milliseconds. */
export interface Thresholds {
  readonly unhealthyAfterMs: number;
  /** At least `unhealthyAfterMs`. */
  readonly unknownAfterMs: number;
}

/**
 * How many heartbeats must fit into the time to UNHEALTHY. Intervals are shortened if necessary. This is also the
 * minimum number of missed heartbeats that can be configured.
 */
const HEARTBEATS_IN_THRESHOLD = 3;

/**
 * The shortest intervals that an agent can get, even if the policy lets it shorten them: one heartbeat per second, and
 * information every ten seconds.
 */
const SHORTEST_WISHED_HEARTBEAT_MS = 1_000;
const SHORTEST_WISHED_INFO_MS = 10_000;
/**
 * Intervals that agents shorten are rounded up to multiples of this, in milliseconds. A replica counts its sessions by
 * interval, so there must not be a different interval for each agent.
 */
const WISH_STEP_MS = 100;

/** List the problems of a policy, described for an operator; empty if it is valid. */
export function checkPolicy(policy: HealthPolicy): string[] {
  const problems: string[] = [];
  for (const field of POLICY_FIELD_NAMES) {
    const value = policy[field];
    if (value === null || typeof value === "boolean") continue;
    const leastMs = POLICY_FIELDS[field].kind === "hold" ? 0 : 1;
    if (!(Number.isSafeInteger(value) && value >= leastMs)) {
      const least = leastMs === 0 ? "0 or more" : "greater than 0";
      problems.push(`${field} is ${value}: it must be a whole number ${least}`);
    }
  }
  // Compare amounts with each other only if each of them is valid.
  return problems.length > 0 ? problems : contradictions(policy);
}

/**
 * Determine the intervals at which an agent reports. The heartbeat interval is at most a third of the time to
 * UNHEALTHY.
 *
 * @param wishes the intervals that the agent requests in its Hello. The policy takes precedence: an agent can report
 *   more often only if the policy allows it, and within limits. It can send heartbeats less often only if the time to
 *   UNHEALTHY stays the same. Wishes never change a threshold.
 */
export function intervalsFor(policy: HealthPolicy, wishes: Wishes): Intervals {
  const { heartbeatIntervalMs, unhealthyAfterMs, unhealthyAfterMissed, unknownAfterMissed } = policy;
  const { unhealthyAfterMs: effectiveMs } = thresholdsOf(policy, heartbeatIntervalMs);
  const policyMs = wholeMs(Math.min(heartbeatIntervalMs, effectiveMs / HEARTBEATS_IN_THRESHOLD));
  // Do not lengthen the interval if missed heartbeats count, because that would lengthen the threshold.
  const countsMissed = unhealthyAfterMissed !== null || unknownAfterMissed !== null;
  const longestMs = countsMissed ? policyMs : wholeMs(unhealthyAfterMs / HEARTBEATS_IN_THRESHOLD);
  const wishedMs = wholeMs(wishes.heartbeatMs ?? policyMs);
  const isShorter = wishedMs < policyMs;
  return {
    heartbeatMs: isShorter
      ? shortened(policy, { policyMs, wishedMs, shortestMs: SHORTEST_WISHED_HEARTBEAT_MS })
      : Math.min(wishedMs, longestMs),
    infoMs: shortened(policy, {
      policyMs: policy.infoIntervalMs,
      wishedMs: wholeMs(wishes.infoMs ?? policy.infoIntervalMs),
      shortestMs: SHORTEST_WISHED_INFO_MS,
    }),
    usageMs: policy.usageIntervalMs,
  };
}

/** The thresholds for a node. They use the policy's own interval; an agent's wishes do not change them. */
export function policyThresholds(policy: HealthPolicy): Thresholds {
  return thresholdsOf(policy, intervalsFor(policy, NO_WISHES).heartbeatMs);
}

/** The longest heartbeat interval that these thresholds allow, in whole milliseconds. */
export function longestHeartbeatMs({ unhealthyAfterMs }: Thresholds): number {
  return wholeMs(unhealthyAfterMs / HEARTBEATS_IN_THRESHOLD);
}

/**
 * The longer of each pair of thresholds. Used while an agent still follows the old policy because it has not
 * acknowledged the new one.
 */
export function laxerThresholds(kept: Thresholds, wanted: Thresholds): Thresholds {
  return {
    unhealthyAfterMs: Math.max(kept.unhealthyAfterMs, wanted.unhealthyAfterMs),
    unknownAfterMs: Math.max(kept.unknownAfterMs, wanted.unknownAfterMs),
  };
}

/**
 * Determine after how much silence a node is declared: the given time or the given number of missed heartbeats,
 * whichever is earlier.
 *
 * @param heartbeatMs the interval that the agent has acknowledged.
 */
export function thresholdsOf(policy: HealthPolicy, heartbeatMs: number): Thresholds {
  const unhealthyAfterMs = earlier(policy.unhealthyAfterMs, policy.unhealthyAfterMissed, heartbeatMs);
  const unknownAfterMs = earlier(policy.unknownAfterMs, policy.unknownAfterMissed, heartbeatMs);
  return { unhealthyAfterMs, unknownAfterMs: Math.max(unhealthyAfterMs, unknownAfterMs) };
}

function contradictions(policy: HealthPolicy): string[] {
  const problems: string[] = [];
  const { unhealthyAfterMs, unhealthyAfterMissed, unknownAfterMs, heartbeatIntervalMs } = policy;
  if (unhealthyAfterMs < 2 * heartbeatIntervalMs) {
    problems.push(
      `unhealthyAfterMs is ${unhealthyAfterMs}: it must be at least two heartbeats of ${heartbeatIntervalMs} ` +
        "ms, or one lost heartbeat looks like a failure",
    );
  }
  if (unhealthyAfterMissed !== null && unhealthyAfterMissed < HEARTBEATS_IN_THRESHOLD) {
    problems.push(
      `unhealthyAfterMissed is ${unhealthyAfterMissed}: it must be at least ${HEARTBEATS_IN_THRESHOLD}, or one ` +
        "late heartbeat looks like a failure",
    );
  }
  if (unknownAfterMs <= unhealthyAfterMs) {
    problems.push(`unknownAfterMs is ${unknownAfterMs}: it must be greater than unhealthyAfterMs, ${unhealthyAfterMs}`);
  }
  return [...problems, ...missedContradictions(policy)];
}

function missedContradictions(policy: HealthPolicy): string[] {
  const { unknownAfterMissed, unhealthyAfterMissed, unhealthyAfterMs, heartbeatIntervalMs } = policy;
  if (unknownAfterMissed === null) return [];
  if (unhealthyAfterMissed !== null && unknownAfterMissed <= unhealthyAfterMissed) {
    return [
      `unknownAfterMissed is ${unknownAfterMissed}: it must be greater than unhealthyAfterMissed, ` +
        `${unhealthyAfterMissed}`,
    ];
  }
  const unknownMs = unknownAfterMissed * heartbeatIntervalMs;
  if (unhealthyAfterMissed === null && unknownMs <= unhealthyAfterMs) {
    return [
      `unknownAfterMissed is ${unknownAfterMissed}: that many heartbeats of ${heartbeatIntervalMs} ms must take ` +
        `longer than unhealthyAfterMs, ${unhealthyAfterMs}`,
    ];
  }
  return [];
}

/**
 * Return the interval that the agent requests if it is shorter than the policy's interval, within the limits of the
 * policy. Otherwise return the policy's interval.
 */
function shortened(
  { agentMayShorten }: HealthPolicy,
  interval: {
    readonly policyMs: number;
    readonly wishedMs: number;
    readonly shortestMs: number;
  },
): number {
  const { policyMs, wishedMs, shortestMs } = interval;
  if (!agentMayShorten) return policyMs;
  const steppedMs = Math.ceil(Math.max(wishedMs, shortestMs) / WISH_STEP_MS) * WISH_STEP_MS;
  return Math.min(policyMs, steppedMs);
}

function earlier(afterMs: number, missed: number | null, heartbeatMs: number): number {
  return missed === null ? afterMs : Math.min(afterMs, missed * heartbeatMs);
}

function wholeMs(amountMs: number): number {
  return Math.max(1, Math.floor(amountMs));
}
