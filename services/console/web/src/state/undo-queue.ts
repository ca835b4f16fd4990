/** How long a decision can be taken back. */
export const UNDO_MS = 5000;
/** Decisions that wait at a time; a further one sends the oldest. */
export const MOST_WAITING = 100;

/** A decision that is not sent yet. */
export interface Waiting<T> {
  readonly id: number;
  readonly what: T;
  readonly dueMs: number;
}

/** Decisions that can still be taken back, the oldest first. */
export type UndoQueue<T> = readonly Waiting<T>[];

/** A queue after something happened, and what to send now. */
export interface Step<T> {
  readonly queue: UndoQueue<T>;
  readonly send: readonly Waiting<T>[];
}

/** Add a decision. When too many wait, the oldest is sent. */
export function decide<T>(
  queue: UndoQueue<T>,
  decision: { readonly id: number; readonly what: T },
  nowMs: number,
): Step<T> {
  const longer = [...queue, { ...decision, dueMs: nowMs + UNDO_MS }];
  const over = Math.max(0, longer.length - MOST_WAITING);
  return { queue: longer.slice(over), send: longer.slice(0, over) };
}

/** Take a decision back. What was sent already stays as it is. */
export function takeBack<T>(queue: UndoQueue<T>, id: number): UndoQueue<T> {
  return queue.filter((one) => one.id !== id);
}

/** The last decision that can be taken back. */
export function latest<T>(queue: UndoQueue<T>): Waiting<T> | undefined {
  return queue.at(-1);
}

/** Send what is due. */
export function sendDue<T>(queue: UndoQueue<T>, nowMs: number): Step<T> {
  return { queue: queue.filter(({ dueMs }) => dueMs > nowMs), send: queue.filter(({ dueMs }) => dueMs <= nowMs) };
}

/** Send everything, as when the page is left. */
export function sendAll<T>(queue: UndoQueue<T>): Step<T> {
  return { queue: [], send: queue };
}

/** Send one decision, whatever is left of its time; the others wait on. */
export function sendOne<T>(queue: UndoQueue<T>, id: number): Step<T> {
  return { queue: takeBack(queue, id), send: queue.filter((one) => one.id === id) };
}

/** Machines of a decision, divided into those that it still concerns and those about which it came too late. */
export function splitStill(
  ids: readonly string[],
  isStill: (id: string) => boolean,
): { readonly still: readonly string[]; readonly late: readonly string[] } {
  return { still: ids.filter(isStill), late: ids.filter((id) => !isStill(id)) };
}

/** Time until the next is due; null when none waits. */
export function msUntilDue<T>(queue: UndoQueue<T>, nowMs: number): number | null {
  const [first] = queue;
  return first === undefined ? null : Math.max(0, first.dueMs - nowMs);
}
