import type { Intervals, Label, ResolvedPolicy, Wishes } from "@rollcall/domain";
import type { PacedSessions } from "./pacer.ts";

/** Labels of operators and join tokens, which alone policies look at. */
export type TrustedLabels = ReadonlyMap<string, string>;

/** What one node is to keep to, and what its agent is known to keep to. Changed by `NodePolicies` alone. */
export interface NodeTerms {
  labels: TrustedLabels;
  resolved: ResolvedPolicy;
  /** What the agent wished for in its Hello. */
  wishes: Wishes;
  /** Of the settings that the stream was told last. */
  generation: number;
  /** The highest that the agent said it keeps to; 0 for one that never says so. */
  acknowledged: number;
  /** Settings with a shorter threshold that the agent has not acknowledged yet. */
  awaited: { readonly generation: number; readonly untilMs: number } | null;
  /** Where its session is counted, while it has one. */
  paced: PacedSessions | null;
  /** The version of the pacer whose interval the agent was told. */
  paceVersion: number;
}

/** What an agent is told to keep to. */
export interface SettingsTerms {
  readonly intervals: Intervals;
  readonly unhealthyAfterMs: number;
  readonly labels: readonly Label[];
  readonly generation: number;
  /** Within which time the agent is to rotate its key; null where it is not to. */
  readonly rotateKeyWithinMs: number | null;
}
