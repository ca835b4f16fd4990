import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** The outcome of a run of upkeep; RUNNING until it ends. */
export type UpkeepOutcome = "RUNNING" | "SUCCEEDED" | "FAILED";

/** The last run of one kind of upkeep. */
export interface UpkeepRun {
  readonly name: string;
  /** The instance that ran it. */
  readonly instance: string;
  readonly startedAtMs: number;
  /**
   * When the run ended; null while it is in progress. Stays null if the process dies during
   * the run.
   */
  readonly endedAtMs: number | null;
  readonly outcome: UpkeepOutcome;
  /** How many rows the run removed. */
  readonly rows: bigint;
  /** Why the run failed; empty otherwise. */
  readonly message: string;
  /** How many runs of this kind there have been, including this one. */
  readonly runs: bigint;
}

/** Record the start of a run. */
export async function beginUpkeepRun(db: Db, name: string, instance: string): Promise<void> {
  await db
    .insertInto("upkeep_runs")
    .values({ name, instance, outcome: "RUNNING" })
    .onConflict((conflict) =>
      conflict.column("name").doUpdateSet({
        instance,
        started_at: sql<Date>`now()`,
        ended_at: null,
        outcome: "RUNNING",
        row_count: 0n,
        message: "",
        runs: sql<bigint>`upkeep_runs.runs + 1`,
      }),
    )
    .execute();
}

/** Record how a run ended, unless another process has started a newer run. */
export async function endUpkeepRun(
  db: Db,
  run: Pick<UpkeepRun, "name" | "instance" | "rows" | "message"> & {
    readonly outcome: Exclude<UpkeepOutcome, "RUNNING">;
  },
): Promise<void> {
  const { name, instance, outcome, rows, message } = run;
  await db
    .updateTable("upkeep_runs")
    .set({ outcome, row_count: rows, message, ended_at: sql<Date>`now()` })
    .where("name", "=", name)
    .where("instance", "=", instance)
    .execute();
}

/** List the last run of each kind of upkeep, sorted by name. */
export async function listUpkeepRuns(db: Db): Promise<readonly UpkeepRun[]> {
  const rows = await db.selectFrom("upkeep_runs").selectAll().orderBy("name").execute();
  return rows.map((row) => ({
    name: row.name,
    instance: row.instance,
    startedAtMs: row.started_at.getTime(),
    endedAtMs: row.ended_at?.getTime() ?? null,
    outcome: row.outcome as UpkeepOutcome,
    rows: row.row_count,
    message: row.message,
    runs: row.runs,
  }));
}
