/** The resources that one fleet used, at rest and while it connected. */
export interface SizedFleet {
  readonly agents: number;
  readonly replicas: number;
  /** The cores that all replicas together use at rest. */
  readonly replicaCores: number;
  readonly postgresCores: number;
  /** The resident memory of all replicas in bytes. */
  readonly replicaBytes: number;
  /** The rate at which the write-ahead log grows at rest. */
  readonly walBytesPerSecond: number;
  /** The CPU that all replicas and Postgres use to welcome one agent, in milliseconds. */
  readonly reconnectMsEach: number;
  /** The size of the database in bytes, with all nodes registered. */
  readonly databaseBytes: number;
}

/** A row of the sizing table. `isMeasured` is false if the formula computed it. */
export interface SizingRow {
  readonly agents: number;
  readonly isMeasured: boolean;
  readonly replicas: number;
  readonly cores: number;
  readonly postgresCores: number;
  readonly gibEach: number;
  readonly walMibADay: number;
  readonly databaseMib: number;
  /** The time for all agents to connect when they start together, with two cores for replicas and Postgres. */
  readonly comeInMinutes: number;
}

/** The coefficients of the table. Each value is `fixed` per replica (for Postgres: once) plus `each` per agent. */
export interface SizingFormula {
  readonly replicaCores: Line;
  readonly postgresCores: Line;
  readonly replicaBytes: Line;
  readonly walBytesPerSecond: Line;
  readonly databaseBytes: Line;
  /**
   * The milliseconds per agent as a function of the number of replicas, because each replica reads about every node.
   */
  readonly reconnectMs: Line;
}

interface Line {
  readonly fixed: number;
  readonly each: number;
}

/**
 * The number of agents per replica. A process could open 20,000 files on the machine where this was chosen, and a
 * replica that ends hands its agents to the others.
 */
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
    reconnectMs: lineThrough(fleets.map(({ replicas, reconnectMsEach }) => [replicas, reconnectMsEach])),
  };
}

/** Compute the row of the table for a number of agents. */
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
    reconnectMsEach: at(formula.reconnectMs, replicas),
  });
}

/** The row of the table for a measured fleet. */
export function measuredSizing(fleet: SizedFleet): SizingRow {
  return { ...rowOf(fleet), isMeasured: true };
}

/** Format the table as Markdown. */
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
    "| agents | replicas | cores of replicas | GiB per replica | cores of Postgres | WAL, MiB a day | database, MiB " +
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
    comeInMinutes: (agents * fleet.reconnectMsEach) / CORES / 60_000,
  };
}

/**
 * Fit a line by least squares, with neither a negative intercept nor a negative slope. Otherwise noise in small fleets
 * could make large fleets look too cheap.
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
