import type { NewEvent } from "./events/events.ts";
import type { RefusalReason, Refused } from "./refusal.ts";

/**
 * The effects of a decision: everything to write, and its events in order. Both are empty if there is nothing
 * to do.
 */
export interface Effects<Effect> {
  readonly effects: readonly Effect[];
  readonly events: readonly NewEvent[];
}

/** The result of a decision: its effects, or why it was refused. */
export type Decided<Effect, Reason extends string = RefusalReason> =
  | ({ readonly ok: true } & Effects<Effect>)
  | Refused<Reason>;
