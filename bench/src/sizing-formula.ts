/** What one fleet took, at rest and while it came in. */
export interface SizedFleet {
  readonly agents: number;
  readonly replicas: number;
  /** At rest. */
  readonly replicaCores: number;
  readonly postgresCores: number;
  /** Resident memory of all replicas. */
  readonly replicaBytes: number;
  /** Write-ahead log at rest. */
  readonly walBytesPerSecond: number;
  /** CPU of all replicas and of Postgres together to take in one agent. */
  readonly comingInMsEach: number;
  /** The database, all nodes registered. */
  readonly databaseBytes: number;
}

/** A line of the sizing table; `isMeasured` is false where the formula made it. */
export interface SizingRow {
  readonly agents: number;
  readonly isMeasured: boolean;
  readonly replicas: number;
  readonly cores: number;
  readonly postgresCores: number;
  readonly gibEach: number;
  readonly walMibADay: number;
  readonly databaseMib: number;
  /** All agents at once, on two cores for replicas and Postgres together. */
  readonly comeInMinutes: number;
}

/**
 * What the table is made of: each figure is `fixed` for each replica (or once, of Postgres), and `each` for each agent.
 */
export interface SizingFormula {
  readonly replicaCores: Line;
  readonly postgresCores: Line;
  readonly replicaBytes: Line;
  readonly walBytesPerSecond: Line;
  readonly databaseBytes: Line;
  /** Milliseconds of an agent by the number of replicas, each of which reads of every node. */
  readonly comingInMs: Line;
}

interface Line {
  readonly fixed: number;
  readonly each: number;
}

/** A process may open 20,000 files where this was tuned, and a replica that ends gives its agents to the others. */
export const AGENTS_A_REPLICA = 15_000;
const CORES = 2;
const SECONDS_A_DAY = 86_400;
const MIB = 1_048_576;

/** Fits the formula to fleets of at least two sizes. */
export function fitSizing(fleets: readonly SizedFleet[]): SizingFormula {
  const ofReplicas = (total: (fleet: SizedFleet) => number) =>
    lineThrough(fleets.map((fleet) => [fleet.agents / fleet.replicas, total(fleet) / fleet.replicas]));
  const ofAgents = (total: (fleet: SizedFleet) => number) =>
    lineThrough(fleets.map((fleet) => [fleet.agents, total(fleet)]));
  return {
    replicaCores: ofReplicas(({ replicaCores }) => replicaCores),
    replicaBytes: ofReplicas(({ replicaBytes }) => replicaBytes),
    postgresCores: ofAgents(({ postgresCores }) => postgresCores),
    walBytesPerSecond: ofAgents(({ walBytesPerSecond }) => walBytesPerSecond),
    databaseBytes: ofAgents(({ databaseBytes }) => databaseBytes),
    comingInMs: lineThrough(fleets.map(({ replicas, comingInMsEach }) => [replicas, comingInMsEach])),
  };
}

/** The line of the table for a number of agents, as the formula has it. */
export function computeSizing(formula: SizingFormula, agents: number): SizingRow {
  const replicas = Math.ceil(agents / AGENTS_A_REPLICA);
  const share = agents / replicas;
  const at = ({ fixed, each }: Line, x: number) => fixed + each * x;
  return rowOf({
    agents,
    replicas,
    replicaCores: at(formula.replicaCores, share) * replicas,
    replicaBytes: at(formula.replicaBytes, share) * replicas,
    postgresCores: at(formula.postgresCores, agents),
    walBytesPerSecond: at(formula.walBytesPerSecond, agents),
    databaseBytes: at(formula.databaseBytes, agents),
    comingInMsEach: at(formula.comingInMs, replicas),
  });
}

/** The line of the table for a fleet that was measured. */
export function measuredSizing(fleet: SizedFleet): SizingRow {
  return { ...rowOf(fleet), isMeasured: true };
}

/** The table as Markdown. */
export function formatSizing(rows: readonly SizingRow[]): string {
  const lines = rows.map((row) => {
    const cells = [
      `${row.agents.toLocaleString("en-US")}${row.isMeasured ? "" : " (computed)"}`,
      String(row.replicas),
      row.cores.toFixed(2),
      row.gibEach.toFixed(2),
      row.postgresCores.toFixed(2),
      row.walMibADay.toFixed(0),
      row.databaseMib.toFixed(0),
      row.comeInMinutes.toFixed(1),
    ];
    return `| ${cells.join(" | ")} |`;
  });
  return [
    "| agents | replicas | cores of replicas | GiB a replica | cores of Postgres | WAL, MiB a day | database, MiB " +
      "| all at once, minutes |",
    "|---|---|---|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

function rowOf(fleet: SizedFleet): SizingRow {
  const { agents, replicas } = fleet;
  return {
    agents,
    isMeasured: false,
    replicas,
    cores: fleet.replicaCores,
    postgresCores: fleet.postgresCores,
    gibEach: fleet.replicaBytes / replicas / (1_024 * MIB),
    walMibADay: (fleet.walBytesPerSecond * SECONDS_A_DAY) / MIB,
    databaseMib: fleet.databaseBytes / MIB,
    comeInMinutes: (agents * fleet.comingInMsEach) / CORES / 60_000,
  };
}

/**
 * The line of least squares, never below 0 at its beginning nor falling: noise of small fleets must not make large ones
 * cheaper than they are.
 */
function lineThrough(points: readonly (readonly [x: number, y: number])[]): Line {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const meanX = mean(points.map(([x]) => x));
  const meanY = mean(points.map(([, y]) => y));
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const together = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const each = spread === 0 ? 0 : Math.max(0, together / spread);
  const fixed = meanY - each * meanX;
  return fixed >= 0 ? { fixed, each } : { fixed: 0, each: meanX === 0 ? 0 : meanY / meanX };
}
