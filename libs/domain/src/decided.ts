import type { NewEvent } from "./events/events.ts";
import type { RefusalReason, Refused } from "./refusal.ts";

/** What a decision does: all there is to write and all events, in their order; both empty for nothing to do. */
export interface Effects<Effect> {
  readonly effects: readonly Effect[];
  readonly events: readonly NewEvent[];
}

/** What was decided: what it does, or why it does nothing. */
export type Decided<Effect, Reason extends string = RefusalReason> =
  | ({ readonly ok: true } & Effects<Effect>)
  | Refused<Reason>;
