/** A histogram with cumulative buckets, as in Prometheus. */
export interface Histogram {
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
}

/** Reads one histogram from a process's metrics. */
export async function readHistogram(probePort: number, name: string): Promise<Histogram> {
  return parseHistogram(await readMetrics(probePort), name);
}

/**
 * Reads the greatest value of a gauge from a process's metrics, over all labels; 0 if the gauge is missing.
 */
export async function greatestOf(probePort: number, name: string): Promise<number> {
  return parseGreatest(await readMetrics(probePort), name);
}

/** Use a new connection, because an idle connection can close just as it is reused. */
async function readMetrics(probePort: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${probePort}/metrics`, { headers: { connection: "close" } });
  return await answer.text();
}

/** Finds the greatest value of a gauge in the text of metrics; 0 if it is missing. */
export function parseGreatest(text: string, name: string): number {
  const values = text.split("\n").flatMap((line) => {
    const [, metric, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    return metric === name ? [Number(value)] : [];
  });
  return Math.max(0, ...values);
}

/** Finds a histogram without labels in the text of metrics. Adds up all histograms with the same name. */
export function parseHistogram(text: string, name: string): Histogram {
  const counts = new Map<number, number>();
  for (const line of text.split("\n")) {
    const [, upTo, count] = /^(?:\w+)_bucket\{.*?le="([^"]+)".*?\} (\d+)/.exec(line) ?? [];
    if (upTo === undefined || !line.startsWith(`${name}_bucket`)) continue;
    const bound = upTo === "+Inf" ? Number.POSITIVE_INFINITY : Number(upTo);
    counts.set(bound, (counts.get(bound) ?? 0) + Number(count));
  }
  const sorted = [...counts].toSorted(([left], [right]) => left - right);
  return { buckets: sorted.map(([upTo, count]) => ({ upTo, count })) };
}

/**
 * The upper bound of the bucket that contains this share of the observations. It is never less than the true
 * value.
 */
export function quantileOf({ buckets }: Histogram, share: number): number {
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) return 0;
  const found = buckets.find(({ count }) => count >= total * share)?.upTo ?? 0;
  if (Number.isFinite(found)) return found;
  return buckets.at(-2)?.upTo ?? 0;
}
