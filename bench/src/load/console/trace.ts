/** The fields that are read from an event of Chromium's trace. Times are in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly ts: number;
  /** How long the event took, if it is complete in itself. */
  readonly dur?: number;
  readonly pid?: number;
  readonly tid?: number;
  readonly id2?: { readonly local?: string };
  readonly id?: string;
  readonly args?: { readonly name?: string; readonly data?: { readonly interactionId?: number } };
}

/**
 * Return how long each interaction took until the next frame was shown, in milliseconds, from Chromium's
 * EventTiming. An interaction takes as long as its longest event, as in the metric Interaction to Next Paint.
 */
export function interactionsOf(events: readonly TraceEvent[]): Float64Array {
  const open = new Map<string, { readonly ts: number; readonly interaction: number }>();
  const longest = new Map<string, number>();
  const timings = events.filter(({ name }) => name === "EventTiming").sort((one, other) => one.ts - other.ts);
  for (const event of timings) {
    const key = `${event.pid}/${event.id2?.local ?? event.id}`;
    if (event.ph === "b") {
      open.set(key, { ts: event.ts, interaction: event.args?.data?.interactionId ?? 0 });
      continue;
    }
    const begun = open.get(key);
    if (event.ph !== "e" || begun === undefined) continue;
    open.delete(key);
    const interaction = event.args?.data?.interactionId ?? begun.interaction;
    if (interaction <= 0) continue;
    const name = `${event.pid}/${interaction}`;
    longest.set(name, Math.max(longest.get(name) ?? 0, (event.ts - begun.ts) / 1_000));
  }
  return Float64Array.from(longest.values());
}

/**
 * Return how long each task of the pages' main threads took, in milliseconds. A task is what the thread runs without
 * a chance to react to the user.
 */
export function tasksOf(events: readonly TraceEvent[]): Float64Array {
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;
  const isMainName = ({ name, args }: TraceEvent) => name === "thread_name" && args?.name === "CrRendererMain";
  const main = new Set(events.filter(isMainName).map(threadOf));
  const tasks = events.filter((event) => event.name === "RunTask" && event.ph === "X" && main.has(threadOf(event)));
  return Float64Array.from(tasks, ({ dur }) => (dur ?? 0) / 1_000);
}
