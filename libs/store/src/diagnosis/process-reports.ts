import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** What a process of the control plane says of itself. A release may leave out what it does not know. */
export interface ProcessFacts {
  readonly version: string;
  readonly nodeVersion: string;
  /** How far its clock is ahead of the record's; negative when it is behind. */
  readonly clockAheadMs: number;
  /** How long the record took to answer the simplest question. */
  readonly recordLatencyMs: number;
  readonly openFiles: number | null;
  /** Null where nothing limits them. */
  readonly openFilesLimit: number | null;
  /** When its TLS certificate ends; null in clear text. */
  readonly certificateEndsAtMs: number | null;
  /** Fingerprints of the authorities that it announces to agents. */
  readonly authorities?: readonly string[];
  /** The one of them that verifies its certificate; null for none. */
  readonly certificateAuthority?: string | null;
  /** Null for a process that knows no NATS. */
  readonly natsConnected: boolean | null;
  /** How long the follower of the log that is furthest behind has lacked something. */
  readonly feedLagMs: number;
  /** The longest wait of a call for a connection to Postgres within the last half minute; 0 when none waited. */
  readonly callsWaitingMs: number;
  /** Whether notifications of Postgres do not arrive at it. */
  readonly lacksNotifications: boolean;
}

/** A report as the record has it. */
export interface ProcessReport {
  readonly instance: string;
  readonly service: string;
  readonly host: string;
  readonly facts: ProcessFacts;
  readonly ageMs: number;
}

/** Say how a process is, in place of what it said before. */
export async function saveProcessReport(db: Db, report: Omit<ProcessReport, "ageMs">): Promise<void> {
  const { instance, service, host } = report;
  const facts = JSON.stringify(report.facts);
  await db
    .insertInto("process_reports")
    .values({ instance, service, host, facts })
    .onConflict((conflict) =>
      conflict.column("instance").doUpdateSet({ service, host, facts, reported_at: sql<Date>`now()` }),
    )
    .execute();
  await db.deleteFrom("process_reports").where("reported_at", "<", sql<Date>`now() - interval '1 day'`).execute();
}

/** Forget what a process said, when it ends. */
export async function forgetProcessReport(db: Db, instance: string): Promise<void> {
  await db.deleteFrom("process_reports").where("instance", "=", instance).execute();
}

/** What the processes say that hold a lease, by instance. */
export async function listProcessReports(db: Db): Promise<readonly ProcessReport[]> {
  const rows = await db
    .selectFrom("process_reports as r")
    .innerJoin("leases as l", "l.name", "r.instance")
    .select(["r.instance", "r.service", "r.host", "r.facts"])
    .select(sql<number>`(extract(epoch from clock_timestamp() - r.reported_at) * 1000)::double precision`.as("ageMs"))
    .orderBy("r.instance")
    .limit(MOST_PROCESSES)
    .execute();
  return rows.map((row) => ({ ...row, facts: row.facts as ProcessFacts }));
}

const MOST_PROCESSES = 1_000;
