import type { Verdict } from "./drill.ts";

/** One look at everything, while the fleet churns. */
export interface ChurnSample {
  readonly atMs: number;
  /** Of each process, by its name: heap and what it holds outside itself, after a collection of garbage. */
  readonly heapBytes: Readonly<Record<string, number>>;
  readonly rssBytes: Readonly<Record<string, number>>;
  /** The most that any follower of the log is behind, in events. */
  readonly lagEvents: number;
  /** Of each table with as many rows at the end as at the beginning, indexes included. */
  readonly tableBytes: Readonly<Record<string, number>>;
  /** What of each of these tables is no row that counts, as pgstattuple has it: dead rows, free space, headers. */
  readonly bloatBytes: Readonly<Record<string, number>>;
}

/** What came of it. */
export interface ChurnOutcome {
  readonly agents: number;
  readonly samples: readonly ChurnSample[];
  /** How often each kind of change was made. */
  readonly changes: Readonly<Record<string, number>>;
  /** Calls that were refused, and why the last one was. */
  readonly failed: number;
  readonly lastFailure: string;
  /** Nodes that were declared UNHEALTHY or UNKNOWN though their agents were never killed. */
  readonly falselyJudged: readonly string[];
}

/** What it is judged by. */
export interface ChurnLimits {
  /** Samples before this time are of processes that still warm up. */
  readonly warmUpMs: number;
  /** Growth that is allowed from the first third after that to the last, as a share. Null: it is printed alone. */
  readonly growth: number | null;
  readonly lagEvents: number;
}

/** Less than this is noise, whatever the share: a scrape, a timer, a compiled function. */
const NOISE_BYTES = 2 * 1_048_576;
const MIB = 1_048_576;

/** What grew: a name, and its median of the first and of the last third. */
interface Growth {
  readonly name: string;
  readonly first: number;
  readonly last: number;
}

/** The verdict: nothing may have grown, lagged or been judged falsely. */
export function churnVerdict(outcome: ChurnOutcome, limits: ChurnLimits): Verdict {
  const { agents, samples, changes, failed, lastFailure, falselyJudged } = outcome;
  const settled = samples.filter(({ atMs }) => atMs >= limits.warmUpMs);
  const heaps = growthOf(settled, "heapBytes");
  const tables = growthOf(settled, "tableBytes");
  const bloat = growthOf(settled, "bloatBytes");
  const lag = Math.max(0, ...settled.map(({ lagEvents }) => lagEvents));
  const hasGrown = ({ first, last }: Growth, of = first) =>
    limits.growth !== null && last - first > Math.max(of * limits.growth, NOISE_BYTES);
  // What is no row comes and goes between two runs of vacuum: its growth counts as a share of the table.
  const sizes = new Map(tables.map(({ name, first }) => [name, first]));
  const grown = [
    ...[...heaps, ...tables].filter((one) => hasGrown(one)),
    ...bloat.filter((one) => hasGrown(one, sizes.get(one.name))),
  ];
  const isEmpty = settled.length < LEAST_SAMPLES;
  const passed =
    !isEmpty && grown.length === 0 && lag <= limits.lagEvents && failed === 0 && falselyJudged.length === 0;
  const text = [
    `${passed ? "PASSED" : "FAILED"}: ${agents} agents, ${samples.length} looks, ` +
      Object.entries(changes)
        .map(([what, count]) => `${count} ${what}`)
        .join(", "),
    ...(isEmpty ? ["  too few looks to compare: let it run longer"] : []),
    `  falsely judged:  ${falselyJudged.length}${falselyJudged.length > 0 ? ` (${falselyJudged.slice(0, 3)})` : ""}`,
    `  failed calls:    ${failed}${failed > 0 ? ` (${lastFailure})` : ""}`,
    `  lag, at most:    ${lag} events, of ${limits.lagEvents}`,
    ...section("heap, MiB", heaps, grown),
    ...section("resident, MiB", growthOf(settled, "rssBytes"), []),
    ...section("tables, MiB", tables, grown),
    ...section("of them no rows, MiB", bloat, grown),
  ];
  return { passed, text: text.join("\n") };
}

/** With fewer there is no first and last third. */
const LEAST_SAMPLES = 3;

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
