import type { Intervals, Label, ResolvedPolicy, Wishes } from "@rollcall/domain";
import type { PacedSessions } from "./pacer.ts";

/** Labels of operators and join tokens, the only ones that policies look at. */
export type TrustedLabels = ReadonlyMap<string, string>;

/** The terms of one node, and which of them its agent has acknowledged. Only `NodePolicies` changes it. */
export interface NodeTerms {
  labels: TrustedLabels;
  resolved: ResolvedPolicy;
  /** What the agent wished for in its Hello. */
  wishes: Wishes;
  /** Of the settings last sent on the stream. */
  generation: number;
  /** The highest that the agent acknowledged; 0 for none. */
  acknowledged: number;
  /** Settings with a shorter threshold, not acknowledged yet. */
  awaited: { readonly generation: number; readonly untilMs: number } | null;
  /** The group that counts its session, while it has one. */
  paced: PacedSessions | null;
  /** The pacer's version when the agent was last told its interval. */
  paceVersion: number;
}

/** The settings of an agent. */
export interface SettingsTerms {
  readonly intervals: Intervals;
  readonly unhealthyAfterMs: number;
  readonly labels: readonly Label[];
  readonly generation: number;
  /** The time within which the agent must rotate its key; null for none. */
  readonly rotateKeyWithinMs: number | null;
}
