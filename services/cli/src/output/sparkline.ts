const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * Draw values as one row of bars between `low` and `high`; what is missing is a blank. Values beyond the ends are drawn
 * at the ends. `width`: how many of the last values are drawn; fewer values are filled with blanks on the left.
 */
export function sparkline(
  values: readonly (number | undefined)[],
  { width, low = 0, high = 100 }: { readonly width: number; readonly low?: number; readonly high?: number },
): string {
  const last = values.slice(-width);
  const bars = last.map((value) => {
    if (value === undefined || !Number.isFinite(value)) return " ";
    const share = (value - low) / (high - low);
    const step = Math.min(BARS.length - 1, Math.max(0, Math.floor(share * BARS.length)));
    return BARS[step] ?? " ";
  });
  return " ".repeat(Math.max(0, width - last.length)) + bars.join("");
}
