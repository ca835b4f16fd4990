import { type HealthPolicy, POLICY_FIELD_NAMES, POLICY_FIELDS } from "./policy-fields.ts";

/**
 * 1 minute to UNHEALTHY, 5 minutes to UNKNOWN, a heartbeat every 15 s, information every minute; holds for flapping and
 * for hardware.
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

/** What one value of a policy can be. */
export type PolicyValue = HealthPolicy[keyof HealthPolicy];

/** How often an agent is to report, in milliseconds. */
export interface Intervals {
  readonly heartbeatMs: number;
  readonly infoMs: number;
  readonly usageMs: number;
}

/** What an agent's own configuration wishes for, in milliseconds; null where it says nothing. */
export interface Wishes {
  readonly heartbeatMs: number | null;
  readonly infoMs: number | null;
}

/** The wishes of an agent that has none. */
export const NO_WISHES: Wishes = { heartbeatMs: null, infoMs: null };

/** Silence after which the detector declares, in milliseconds. */
export interface Thresholds {
  readonly unhealthyAfterMs: number;
  /** Never less than `unhealthyAfterMs`. */
  readonly unknownAfterMs: number;
}

/**
 * Intervals are at most this part of the time to UNHEALTHY, and as many missed heartbeats are the fewest that count.
 */
const HEARTBEATS_IN_THRESHOLD = 3;

/**
 * No wish is granted below these, even where the policy lets agents shorten: a heartbeat a second, and information
 * every ten.
 */
const SHORTEST_WISHED_HEARTBEAT_MS = 1_000;
const SHORTEST_WISHED_INFO_MS = 10_000;
/**
 * Shorter wishes are rounded up to whole steps: a replica counts its sessions by interval, and there must not be one
 * for each agent.
 */
const WISH_STEP_MS = 100;

/** Find what contradicts itself in a policy, in words for an operator; empty when it can be used. */
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
  // What follows compares amounts, which says nothing about ones that make no sense.
  return problems.length > 0 ? problems : contradictions(policy);
}

/**
 * Say how often an agent reports. The heartbeat never takes more than a third of the time to UNHEALTHY.
 *
 * @param wishes what the agent wished for in its Hello. The policy wins: a wish to report more often is granted only
 *   where it says so, and within bounds; one to beat less often only as far as the time to UNHEALTHY stays as it is. No
 *   wish changes a threshold.
 */
export function intervalsFor(policy: HealthPolicy, wishes: Wishes): Intervals {
  const { heartbeatIntervalMs, unhealthyAfterMs, unhealthyAfterMissed, unknownAfterMissed } = policy;
  const { unhealthyAfterMs: effectiveMs } = thresholdsOf(policy, heartbeatIntervalMs);
  const policyMs = wholeMs(Math.min(heartbeatIntervalMs, effectiveMs / HEARTBEATS_IN_THRESHOLD));
  // Where missed heartbeats count, a longer interval would be a longer threshold.
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

/**
 * The thresholds by which a node is judged. They follow from the policy's own interval: what an agent wishes for
 * changes nothing about them.
 */
export function policyThresholds(policy: HealthPolicy): Thresholds {
  return thresholdsOf(policy, intervalsFor(policy, NO_WISHES).heartbeatMs);
}

/** The longest heartbeat interval that these thresholds allow for, in whole milliseconds. */
export function longestHeartbeatMs({ unhealthyAfterMs }: Thresholds): number {
  return wholeMs(unhealthyAfterMs / HEARTBEATS_IN_THRESHOLD);
}

/**
 * The thresholds to judge by while an agent is known to keep to the first ones and has not said that it keeps to the
 * others.
 */
export function laxerThresholds(kept: Thresholds, wanted: Thresholds): Thresholds {
  return {
    unhealthyAfterMs: Math.max(kept.unhealthyAfterMs, wanted.unhealthyAfterMs),
    unknownAfterMs: Math.max(kept.unknownAfterMs, wanted.unknownAfterMs),
  };
}

/**
 * Say after how much silence a node is declared: the earlier of the time and of the heartbeats missed.
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
      `unknownAfterMissed is ${unknownAfterMissed}: as many heartbeats of ${heartbeatIntervalMs} ms must take ` +
        `longer than unhealthyAfterMs, ${unhealthyAfterMs}`,
    ];
  }
  return [];
}

/** An interval that an agent wishes to be shorter, as far as the policy lets it; the policy's own when it does not. */
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
