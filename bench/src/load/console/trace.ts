/** What is read of an event of Chromium's trace; times are in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly ts: number;
  readonly pid?: number;
  readonly id2?: { readonly local?: string };
  readonly id?: string;
  readonly args?: { readonly data?: { readonly interactionId?: number } };
}

/**
 * How long each interaction took until the next frame was shown, in milliseconds, as Chromium's EventTiming tells it:
 * an interaction is as long as the longest of its events, as for the metric Interaction to Next Paint.
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
