/** How long a decision can be undone. */
export const UNDO_MS = 5000;
/** Maximum number of queued decisions. Adding one to a full queue sends the oldest. */
export const MOST_WAITING = 100;

/** A decision that has not been sent. */
export interface Waiting<T> {
  readonly id: number;
  readonly what: T;
  readonly dueMs: number;
}

/** Decisions that can still be undone, oldest first. */
export type UndoQueue<T> = readonly Waiting<T>[];

/** The queue after a step, and what to send now. */
export interface Step<T> {
  readonly queue: UndoQueue<T>;
  readonly send: readonly Waiting<T>[];
}

/** Add a decision. A full queue sends its oldest one. */
export function decide<T>(
  queue: UndoQueue<T>,
  decision: { readonly id: number; readonly what: T },
  nowMs: number,
): Step<T> {
  const longer = [...queue, { ...decision, dueMs: nowMs + UNDO_MS }];
  const over = Math.max(0, longer.length - MOST_WAITING);
  return { queue: longer.slice(over), send: longer.slice(0, over) };
}

/** Undo a decision, unless it was already sent. */
export function takeBack<T>(queue: UndoQueue<T>, id: number): UndoQueue<T> {
  return queue.filter((one) => one.id !== id);
}

/** The last decision that can be undone. */
export function latest<T>(queue: UndoQueue<T>): Waiting<T> | undefined {
  return queue.at(-1);
}

/** Send the decisions whose time is up. */
export function sendDue<T>(queue: UndoQueue<T>, nowMs: number): Step<T> {
  return { queue: queue.filter(({ dueMs }) => dueMs > nowMs), send: queue.filter(({ dueMs }) => dueMs <= nowMs) };
}

/** Send all decisions, for example when the page is left. */
export function sendAll<T>(queue: UndoQueue<T>): Step<T> {
  return { queue: [], send: queue };
}

/** Send one decision now. */
export function sendOne<T>(queue: UndoQueue<T>, id: number): Step<T> {
  return { queue: takeBack(queue, id), send: queue.filter((one) => one.id === id) };
}

/** Split the machines of a decision into those that are still pending and those that no longer are. */
export function splitStill(
  ids: readonly string[],
  isStill: (id: string) => boolean,
): { readonly still: readonly string[]; readonly late: readonly string[] } {
  return { still: ids.filter(isStill), late: ids.filter((id) => !isStill(id)) };
}

/** Time until the next decision is sent; null for an empty queue. */
export function msUntilDue<T>(queue: UndoQueue<T>, nowMs: number): number | null {
  const [first] = queue;
  return first === undefined ? null : Math.max(0, first.dueMs - nowMs);
}
