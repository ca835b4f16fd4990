import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** How a run of upkeep ended, if it has. */
export type UpkeepOutcome = "RUNNING" | "SUCCEEDED" | "FAILED";

/** The last run of one kind of upkeep. */
export interface UpkeepRun {
  readonly name: string;
  /** Who did it. */
  readonly instance: string;
  readonly startedAtMs: number;
  /** Null while it runs, and for ever when its process ended before. */
  readonly endedAtMs: number | null;
  readonly outcome: UpkeepOutcome;
  /** Rows that it removed. */
  readonly rows: bigint;
  /** Why it failed; empty otherwise. */
  readonly message: string;
  /** How many runs there have been, this one included. */
  readonly runs: bigint;
}

/** Note that a run begins. */
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

/** Note how a run ended, unless another process has begun one since. */
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

/** The last run of each kind, by name. */
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
