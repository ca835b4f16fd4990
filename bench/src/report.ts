/** One line of a benchmark's table. */
export interface Figure {
  readonly figure: string;
  readonly measured: number;
  /** The unit of `measured` and `compared`. */
  readonly unit: string;
  /** The name of the value to compare with: a rival or a bound from the same run, or a target. */
  readonly against: string;
  readonly compared: number;
  /** The intended ratio of the two values, for people to evaluate. No test fails because of it. */
  readonly target: string;
}

/** Prints figures as one table with the columns figure, rival or bound, and ratio. */
export function formatTable(title: string, figures: readonly Figure[]): string {
  const header = ["figure", "measured", "against", "", "ratio", "target"];
  const rows = figures.map((one) => [
    one.figure,
    `${formatNumber(one.measured)} ${one.unit}`.trim(),
    one.against,
    `${formatNumber(one.compared)} ${one.unit}`.trim(),
    one.compared === 0 ? "-" : (one.measured / one.compared).toFixed(2),
    one.target,
  ]);
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [title, line(header), ...rows.map(line)].join("\n");
}

/**
 * The value below which this share of the samples lies; 0 if there are no samples. Sorts the samples in place.
 */
export function percentile(samples: Float64Array, share: number): number {
  samples.sort();
  return samples[Math.min(samples.length - 1, Math.floor(samples.length * share))] ?? 0;
}

/**
 * Like percentile(), for counts: `counts[n]` is the number of samples with the value n. Returns 0 if there are no
 * samples.
 */
export function percentileOfCounts(counts: readonly number[], share: number): number {
  const all = counts.reduce((sum, count) => sum + count, 0);
  let left = Math.floor(all * share);
  for (const [index, count] of counts.entries()) {
    if (left < count) return index;
    left -= count;
  }
  return 0;
}

function formatNumber(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}
