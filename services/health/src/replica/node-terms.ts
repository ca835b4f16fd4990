import type { Intervals, Label, ResolvedPolicy, Wishes } from "@rollcall/domain";
import type { PacedSessions } from "./pacer.ts";

/** Labels of operators and join tokens, the only ones that policies use. */
export type TrustedLabels = ReadonlyMap<string, string>;

/** The terms of one node, and which of them its agent has acknowledged. Only `NodePolicies` changes it. */
export interface NodeTerms {
  labels: TrustedLabels;
  resolved: ResolvedPolicy;
  /** The intervals that the agent requested in its Hello. */
  wishes: Wishes;
  /** The generation of the settings last sent on the stream. */
  generation: number;
  /** The highest generation that the agent acknowledged; 0 for none. */
  acknowledged: number;
  /** Settings with a shorter threshold that are not acknowledged yet. */
  awaited: { readonly generation: number; readonly untilMs: number } | null;
  /** The pacer's group that counts the node's session; null without a session. */
  paced: PacedSessions | null;
  /** The pacer's version at the time when the agent was last sent its interval. */
  paceVersion: number;
}

/** The settings of an agent. */
export interface SettingsTerms {
  readonly intervals: Intervals;
  readonly unhealthyAfterMs: number;
  readonly labels: readonly Label[];
  readonly generation: number;
  /** The agent must rotate its key within this time; null for none. */
  readonly rotateKeyWithinMs: number | null;
}
