import type { ApiFared } from "../load/hostile/api-prober.ts";
import type { AttackOutcome } from "../load/hostile/attacker.ts";
import type { AgentsFared } from "../load/hostile/good-agents.ts";
import type { DrillResult } from "./drill.ts";

/** The result of one scenario. */
export interface ScenarioOutcome {
  readonly name: string;
  readonly attack: AttackOutcome;
  readonly agents: AgentsFared;
  readonly api: ApiFared;
}

/** The result of all scenarios. */
export interface HostileOutcome {
  readonly agents: number;
  readonly outcomes: readonly ScenarioOutcome[];
  readonly before: { readonly descriptors: number; readonly heapBytes: number };
  readonly after: { readonly descriptors: number; readonly heapBytes: number };
}

/** Time limits; null if times are not evaluated. */
export interface HostileLimits {
  readonly ackP99Ms: number | null;
  readonly apiMs: number | null;
}

/** The number of descriptors that may be added, because database pools open and close connections on demand. */
const DATABASE_CONNECTIONS = 16;
/** The memory that the first calls of each kind always add, for compiled code and caches. */
const HEAP_ALLOWANCE_BYTES = 24 * 1_048_576;

/** Evaluate all scenarios. The drill fails if agents or operators noticed an attack; the result names the scenario. */
export function hostileResult(outcome: HostileOutcome, limits: HostileLimits): DrillResult {
  const { agents, outcomes, before, after } = outcome;
  const problems = outcomes.flatMap((one) => problemsOf(one, limits).map((problem) => `${one.name}: ${problem}`));
  if (after.descriptors > before.descriptors + DATABASE_CONNECTIONS) {
    problems.push(`${after.descriptors} descriptors are open, ${before.descriptors} at the start`);
  }
  if (after.heapBytes > before.heapBytes + HEAP_ALLOWANCE_BYTES) {
    problems.push(`${mebibytes(after.heapBytes)} of heap, ${mebibytes(before.heapBytes)} at the start`);
  }
  const passed = problems.length === 0;
  const lost = outcomes.reduce((sum, one) => sum + one.agents.lost, 0);
  const head = `${passed ? "PASSED" : "FAILED"}: ${agents} agents, ${outcomes.length} scenarios, ${lost} streams lost`;
  const memory =
    `  heap ${mebibytes(before.heapBytes)} before, ${mebibytes(after.heapBytes)} after; descriptors ` +
    `${before.descriptors} before, ${after.descriptors} after`;
  return {
    passed,
    text: [head, ...problems.map((it) => `  ${it}`), memory, ...table(outcomes)].join("\n"),
  };
}

function problemsOf({ agents, api }: ScenarioOutcome, limits: HostileLimits): readonly string[] {
  const problems: string[] = [];
  if (agents.lost > 0) problems.push(`${agents.lost} streams lost`);
  if (agents.acks === 0) problems.push("no acknowledgement");
  if (limits.ackP99Ms !== null && agents.p99Ms >= limits.ackP99Ms) {
    problems.push(`acknowledgements p99 ${agents.p99Ms.toFixed(0)} ms`);
  }
  const [failure] = api.failures;
  if (failure !== undefined) {
    problems.push(`${api.failures.length} calls of an operator failed, the first: ${failure}`);
  }
  if (limits.apiMs !== null && api.slowestMs >= limits.apiMs) {
    problems.push(`the API took ${api.slowestMs.toFixed(0)} ms`);
  }
  return problems;
}

function table(outcomes: readonly ScenarioOutcome[]): readonly string[] {
  const header = ["scenario", "p50", "p99", "most", "API", "connections", "MiB"];
  const rows = outcomes.map(({ name, agents, api, attack }) => [
    name,
    agents.p50Ms.toFixed(1),
    agents.p99Ms.toFixed(1),
    agents.slowestMs.toFixed(0),
    api.slowestMs.toFixed(0),
    String(attack.connections),
    (attack.bytes / 1_048_576).toFixed(1),
  ]);
  return [header, ...rows].map(
    ([name = "", ...cells]) => `  ${name.padEnd(28)}${cells.map((it) => it.padStart(12)).join("")}`,
  );
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
