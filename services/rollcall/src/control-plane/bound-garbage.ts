import { setFlagsFromString } from "node:v8";

/** In per cent of what the collection before has left. */
const MOST_GROWTH = 60;

/**
 * Collect garbage before the heap has grown by more than so much. What a heartbeat leaves behind in Node's HTTP/2 lives
 * until the node's next one, and so is found by a full collection only; of those V8 makes as few as it can, and a
 * process that holds ten thousand agents would grow to twice its size in between. See
 * docs/decisions/0023-bounded-garbage.md for what it costs.
 */
export function boundGarbage(): void {
  setFlagsFromString(`--heap-growing-percent=${MOST_GROWTH}`);
}
