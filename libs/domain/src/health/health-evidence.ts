import type { Json } from "../events/events.ts";
import { describeSource } from "../policy/policy-changes.ts";
import { POLICY_FIELDS } from "../policy/policy-fields.ts";
import type { ResolvedPolicy } from "../policy/resolve-policy.ts";

/** What a node was declared silent by. */
export interface SilenceEvidence {
  /** The instance of the replica that judged. */
  readonly replica: string;
  /** Real time since the last frame; null when this replica never received one. */
  readonly lastReceivedAgoMs: number | null;
  /** Time without a frame in which one could have been received. */
  readonly silentMs: number;
  /** The silence that is allowed. */
  readonly thresholdMs: number;
  /**
   * Time that was not counted, because the replica was stopped, starved, or in doubt about its lease, or had sent the
   * agent away.
   */
  readonly grantedMs: number;
  /** The value of the policy that set the threshold, for example "unhealthyAfter". */
  readonly value: string;
  /** Where that value comes from: "the configuration", "the default", "group gpus", "node n1". */
  readonly policy: string;
}

/** Put together what a node was declared silent by. */
export function silenceEvidence(verdict: {
  readonly replica: string;
  readonly to: "UNHEALTHY" | "UNKNOWN";
  readonly lastReceivedAgoMs: number | null;
  readonly silentMs: number;
  readonly thresholdMs: number;
  readonly resolved: ResolvedPolicy;
}): SilenceEvidence {
  const { replica, to, lastReceivedAgoMs, silentMs, thresholdMs, resolved } = verdict;
  const field = decidingField(to, thresholdMs, resolved);
  const wholeSilentMs = Math.round(silentMs);
  return {
    replica,
    lastReceivedAgoMs: lastReceivedAgoMs === null ? null : Math.round(lastReceivedAgoMs),
    silentMs: wholeSilentMs,
    thresholdMs: Math.round(thresholdMs),
    grantedMs: Math.max(0, Math.round(lastReceivedAgoMs ?? wholeSilentMs) - wholeSilentMs),
    value: POLICY_FIELDS[field].name,
    policy: describeSource(resolved.sources[field]),
  };
}

/** What events carry of it. */
export function evidenceFacts(evidence: SilenceEvidence): Json {
  return { ...evidence };
}

function decidingField(to: "UNHEALTHY" | "UNKNOWN", thresholdMs: number, { policy }: ResolvedPolicy) {
  if (to === "UNHEALTHY") {
    return thresholdMs < policy.unhealthyAfterMs ? "unhealthyAfterMissed" : "unhealthyAfterMs";
  }
  return thresholdMs < policy.unknownAfterMs ? "unknownAfterMissed" : "unknownAfterMs";
}
