/** One line of a benchmark's table. */
export interface Figure {
  readonly figure: string;
  readonly measured: number;
  /** What `measured` and `beside` are counted in. */
  readonly unit: string;
  /** What it is measured against: a rival or bound of the same run, or the figure that is aimed at. */
  readonly against: string;
  readonly beside: number;
  /** What the ratio of the two should be, for people to judge: nothing fails by it. */
  readonly target: string;
}

/** Prints figures as one table: figure, rival or bound, ratio. */
export function formatTable(title: string, figures: readonly Figure[]): string {
  const header = ["figure", "measured", "against", "", "ratio", "target"];
  const rows = figures.map((one) => [
    one.figure,
    `${formatNumber(one.measured)} ${one.unit}`.trim(),
    one.against,
    `${formatNumber(one.beside)} ${one.unit}`.trim(),
    one.beside === 0 ? "-" : (one.measured / one.beside).toFixed(2),
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

/** The value below which this share of the samples lies; 0 without samples. Sorts the samples in place. */
export function percentile(samples: Float64Array, share: number): number {
  samples.sort();
  return samples[Math.min(samples.length - 1, Math.floor(samples.length * share))] ?? 0;
}

/** The same of samples that are counted: how many there are of 0, of 1, and so on; 0 without samples. */
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
