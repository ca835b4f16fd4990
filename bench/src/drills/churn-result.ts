import type { DrillResult } from "./drill.ts";

/** One sample of all measured values while the fleet churns. */
export interface ChurnSample {
  readonly atMs: number;
  /** The memory of each process after a garbage collection, heap and external, keyed by process name. */
  readonly heapBytes: Readonly<Record<string, number>>;
  readonly rssBytes: Readonly<Record<string, number>>;
  /** The largest lag of any follower of the log, in events. */
  readonly lagEvents: number;
  /** The size, including indexes, of each table whose number of rows stays constant, keyed by table name. */
  readonly tableBytes: Readonly<Record<string, number>>;
  /**
   * The bytes in each of these tables that hold no live row, according to pgstattuple. They are dead rows, free
   * space and headers.
   */
  readonly bloatBytes: Readonly<Record<string, number>>;
}

/** The result of the drill. */
export interface ChurnOutcome {
  readonly agents: number;
  readonly samples: readonly ChurnSample[];
  /** The number of changes of each kind. */
  readonly changes: Readonly<Record<string, number>>;
  /** The number of refused calls, and the reason of the last refusal. */
  readonly failed: number;
  readonly lastFailure: string;
  /** Nodes that were declared UNHEALTHY or UNKNOWN although their agents were never killed. */
  readonly falselyDeclared: readonly string[];
}

/** The limits that decide whether the drill passes. */
export interface ChurnLimits {
  /** Ignore samples before this time, because the processes are still warming up. */
  readonly warmUpMs: number;
  /**
   * The growth allowed between the first and the last third of the samples after warm-up, as a fraction. If null,
   * growth is printed but not limited.
   */
  readonly growth: number | null;
  readonly lagEvents: number;
}

/**
 * Smaller growth is noise, even if its fraction is large. A scrape, a timer or a compiled function can cause it.
 */
const NOISE_BYTES = 2 * 1_048_576;
const MIB = 1_048_576;

/** A value that may have grown: its name, and its medians in the first and in the last third of the samples. */
interface Growth {
  readonly name: string;
  readonly first: number;
  readonly last: number;
}

/** The drill passes if nothing has grown or lagged, no call failed, and no node was declared wrongly. */
export function churnResult(outcome: ChurnOutcome, limits: ChurnLimits): DrillResult {
  const { agents, samples, changes, failed, lastFailure, falselyDeclared } = outcome;
  const settled = samples.filter(({ atMs }) => atMs >= limits.warmUpMs);
  const heaps = growthOf(settled, "heapBytes");
  const tables = growthOf(settled, "tableBytes");
  const bloat = growthOf(settled, "bloatBytes");
  const lag = Math.max(0, ...settled.map(({ lagEvents }) => lagEvents));
  const hasGrown = ({ first, last }: Growth, of = first) =>
    limits.growth !== null && last - first > Math.max(of * limits.growth, NOISE_BYTES);
  // Space without live rows varies between two runs of vacuum, so its growth is compared with the size of the
  // table.
  const sizes = new Map(tables.map(({ name, first }) => [name, first]));
  const grown = [
    ...[...heaps, ...tables].filter((one) => hasGrown(one)),
    ...bloat.filter((one) => hasGrown(one, sizes.get(one.name))),
  ];
  const isEmpty = settled.length < LEAST_SAMPLES;
  const passed =
    !isEmpty && grown.length === 0 && lag <= limits.lagEvents && failed === 0 && falselyDeclared.length === 0;
  const text = [
    `${passed ? "PASSED" : "FAILED"}: ${agents} agents, ${samples.length} samples, ` +
      Object.entries(changes)
        .map(([what, count]) => `${count} ${what}`)
        .join(", "),
    ...(isEmpty ? ["  too few samples to compare; let it run longer"] : []),
    `  wrongly declared: ${falselyDeclared.length}${examples(falselyDeclared)}`,
    `  failed calls:     ${failed}${failed > 0 ? ` (${lastFailure})` : ""}`,
    `  lag, at most:     ${lag} events, of ${limits.lagEvents}`,
    ...section("heap, MiB", heaps, grown),
    ...section("resident, MiB", growthOf(settled, "rssBytes"), []),
    ...section("tables, MiB", tables, grown),
    ...section("without live rows, MiB", bloat, grown),
  ];
  return { passed, text: text.join("\n") };
}

/** The minimum number of samples. Fewer samples have no first and last third. */
const LEAST_SAMPLES = 3;

function examples(names: readonly string[]): string {
  return names.length === 0 ? "" : ` (${names.slice(0, 3)})`;
}

function section(title: string, of: readonly Growth[], grown: readonly Growth[]): readonly string[] {
  const line = (one: Growth) => {
    const { name, first, last } = one;
    const change = `${(first / MIB).toFixed(1)} -> ${(last / MIB).toFixed(1)}`;
    return `    ${name.padEnd(22)} ${change}${grown.includes(one) ? "  GREW" : ""}`;
  };
  return [`  ${title}:`, ...of.map(line)];
}

type SampledField = "heapBytes" | "rssBytes" | "tableBytes" | "bloatBytes";

function growthOf(samples: readonly ChurnSample[], field: SampledField): readonly Growth[] {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const of = (part: readonly ChurnSample[], name: string) => median(part.map((sample) => sample[field][name] ?? 0));
  const names = Object.keys(samples.at(-1)?.[field] ?? {});
  return names.map((name) => ({
    name,
    first: of(samples.slice(0, third), name),
    last: of(samples.slice(-third), name),
  }));
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}
