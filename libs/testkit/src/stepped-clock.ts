import type { Store } from "@rollcall/store";
import { sql } from "kysely";

/** The clock of a test's database, as statements of later connections read it. */
export interface SteppedClock {
  /** Move the clock forward or back. */
  step(ms: number): Promise<void>;
}

/** Make the clock of a test's database adjustable. Column defaults still read the real clock. */
export async function installSteppedClock({ db }: Pick<Store, "db">): Promise<SteppedClock> {
  const { rows } = await sql<{ readonly name: string }>`select current_database() as name`.execute(db);
  await sql`create table clock_step (ms bigint not null)`.execute(db);
  await sql`insert into clock_step values (0)`.execute(db);
  for (const name of ["now", "clock_timestamp"]) {
    await sql`
      create function public.${sql.id(name)}() returns timestamptz volatile language sql
      return pg_catalog.${sql.id(name)}() + (select ms * interval '1 millisecond' from clock_step)`.execute(db);
  }
  // Put the public schema first, so that its functions shadow those of Postgres.
  await sql`alter database ${sql.id(rows[0]?.name ?? "")} set search_path = public, pg_catalog`.execute(db);
  return {
    step: async (ms) => {
      await sql`update clock_step set ms = ms + ${ms}`.execute(db);
    },
  };
}
