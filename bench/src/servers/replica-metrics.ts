/** The cumulative buckets of a histogram, as Prometheus has them. */
export interface Histogram {
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
}

/** Reads one histogram from a process's metrics. */
export async function readHistogram(probePort: number, name: string): Promise<Histogram> {
  return parseHistogram(await readMetrics(probePort), name);
}

/** Reads the greatest value of a gauge from a process's metrics, whatever its labels; 0 when it has none. */
export async function greatestOf(probePort: number, name: string): Promise<number> {
  return parseGreatest(await readMetrics(probePort), name);
}

/** By a connection of its own: one that was kept since the last look may be closed just as it is used again. */
async function readMetrics(probePort: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${probePort}/metrics`, { headers: { connection: "close" } });
  return await answer.text();
}

/** Finds the greatest value of a gauge in the text of metrics; 0 when it is not there. */
export function parseGreatest(text: string, name: string): number {
  const values = text.split("\n").flatMap((line) => {
    const [, metric, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    return metric === name ? [Number(value)] : [];
  });
  return Math.max(0, ...values);
}

/** Finds a histogram without labels of its own in the text of metrics; several of one name are added up. */
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

/** The bound of the bucket in which this share of what was observed lies: never less than the true value. */
export function quantileOf({ buckets }: Histogram, share: number): number {
  const total = buckets.at(-1)?.count ?? 0;
  if (total === 0) return 0;
  const found = buckets.find(({ count }) => count >= total * share)?.upTo ?? 0;
  if (Number.isFinite(found)) return found;
  return buckets.at(-2)?.upTo ?? 0;
}
