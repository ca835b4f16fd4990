import type { Json } from "../events/events.ts";
import { describeSource } from "../policy/policy-changes.ts";
import { POLICY_FIELDS } from "../policy/policy-fields.ts";
import type { ResolvedPolicy } from "../policy/resolve-policy.ts";

/** The facts behind a decision that a node is silent. */
export interface SilenceEvidence {
  /** The instance of the replica that decided. */
  readonly replica: string;
  /** Real time since the last frame; null if this replica never received one. */
  readonly lastReceivedAgoMs: number | null;
  /** Silence in observed time: only time during which a frame could have been received counts. */
  readonly silentMs: number;
  /** The allowed silence. */
  readonly thresholdMs: number;
  /**
   * Time that did not count because the replica was stopped, was starved of CPU, was unsure of its lease, or had
   * asked the agent to return later.
   */
  readonly grantedMs: number;
  /** The policy field that determined the threshold, for example "unhealthyAfter". */
  readonly value: string;
  /** Where the field's value comes from: "the configuration", "the default", "group gpus", "node n1". */
  readonly policy: string;
}

/** Collect the facts behind a decision that a node is silent. */
export function silenceEvidence(decision: {
  readonly replica: string;
  readonly to: "UNHEALTHY" | "UNKNOWN";
  readonly lastReceivedAgoMs: number | null;
  readonly silentMs: number;
  readonly thresholdMs: number;
  readonly resolved: ResolvedPolicy;
}): SilenceEvidence {
  const { replica, to, lastReceivedAgoMs, silentMs, thresholdMs, resolved } = decision;
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

/** The evidence as JSON, for the event. */
export function evidenceFacts(evidence: SilenceEvidence): Json {
  return { ...evidence };
}

function decidingField(to: "UNHEALTHY" | "UNKNOWN", thresholdMs: number, { policy }: ResolvedPolicy) {
  if (to === "UNHEALTHY") {
    return thresholdMs < policy.unhealthyAfterMs ? "unhealthyAfterMissed" : "unhealthyAfterMs";
  }
  return thresholdMs < policy.unknownAfterMs ? "unknownAfterMissed" : "unknownAfterMs";
}
