import { initialState, type ModelState } from "./model-state.ts";
import { type ModelBounds, nextStates } from "./session-model.ts";

/** What an exploration found. */
export interface Exploration {
  /** Different states that can be reached. */
  readonly states: number;
  /** How many steps the last of them is away. */
  readonly depth: number;
  /** The first state in which an invariant does not hold, and which one; null when there is none. */
  readonly violation: { readonly invariant: string; readonly state: ModelState } | null;
}

/** Go through every state that can be reached, the nearest first, until nothing is new or `mostStates` are known. */
export function explore(bounds: ModelBounds, mostStates: number): Exploration {
  const seen = new Set<string>();
  let frontier = [initialState()];
  let depth = 0;
  while (frontier.length > 0) {
    const found: ModelState[] = [];
    for (const state of frontier) {
      for (const next of nextStates(state, bounds)) {
        const key = JSON.stringify(next);
        if (seen.has(key)) continue;
        if (seen.size >= mostStates) return { states: seen.size, depth, violation: null };
        seen.add(key);
        const invariant = brokenInvariant(next);
        if (invariant !== null) {
          return { states: seen.size, depth, violation: { invariant, state: next } };
        }
        found.push(next);
      }
    }
    frontier = found;
    depth += 1;
  }
  return { states: seen.size, depth, violation: null };
}

/**
 * Take steps at random, from the beginning: far deeper than all states could be explored. Null when every invariant
 * held.
 */
export function wander(
  bounds: ModelBounds,
  options: { readonly steps: number; readonly random: () => number },
): Exploration["violation"] {
  let state = initialState();
  for (let step = 0; step < options.steps; step += 1) {
    const next = nextStates(state, bounds);
    state = next[Math.floor(options.random() * next.length)] ?? state;
    const invariant = brokenInvariant(state);
    if (invariant !== null) return { invariant, state };
  }
  return null;
}

/** The invariants of docs/session-protocol.md, by their names there. */
function brokenInvariant(state: ModelState): string | null {
  const { streams, record, owners, written } = state;
  const epochs = streams.flatMap(({ state: it }) => (it.kind === "open" ? [it.epoch] : []));
  if (epochs.filter((epoch) => epoch === record.epoch).length > 1) return "one live session";
  if (new Set(epochs).size < epochs.length) return "an epoch is of one stream";
  if (record.epoch !== owners.length) return "an epoch has one owner";
  if (written !== null && written.epoch !== owners.length) return "only the owner writes";
  if (written !== null && written.replica !== owners.at(-1)) return "only the owner writes";
  for (const { effects, hasEnded, state: session } of streams) {
    if (hasEnded && session.kind !== "closed") return "an ended stream stays ended";
    const isRising = effects.every((sequence, index) => sequence > (effects[index - 1] ?? 0));
    if (!isRising) return "a Beat counts once";
  }
  for (const [replica, { held }] of state.replicas.entries()) {
    if (held === null || held.stream === null) continue;
    const stream = streams[held.stream];
    if (stream?.replica !== replica || stream.state.kind !== "open") return "what is held is open";
    if (stream.state.epoch !== held.epoch) return "what is held is open";
  }
  return null;
}
