import { sql } from "kysely";
import type { Db } from "../database/store.ts";

/** A process's report about itself. A process of an older release can omit fields. */
export interface ProcessFacts {
  readonly version: string;
  readonly nodeVersion: string;
  /** How far the process's clock is ahead of the database's; negative when it is behind. */
  readonly clockAheadMs: number;
  /** How long the database took to answer a trivial query. */
  readonly storeLatencyMs: number;
  readonly openFiles: number | null;
  /** The limit of open files; null if there is none. */
  readonly openFilesLimit: number | null;
  /** When the process's TLS certificate expires; null without TLS. */
  readonly certificateEndsAtMs: number | null;
  /** Fingerprints of the certificate authorities that the process announces to agents. */
  readonly authorities?: readonly string[];
  /** The fingerprint of the authority that verifies the process's certificate; null if none does. */
  readonly certificateAuthority?: string | null;
  /** Whether the process is connected to NATS; null if it does not use NATS. */
  readonly natsConnected: boolean | null;
  /** How long the slowest follower of the event log has been behind. */
  readonly feedLagMs: number;
  /**
   * The longest time that a call waited for a connection to Postgres within the last 30 seconds; 0 when none waited.
   */
  readonly callsWaitingMs: number;
  /** Whether the process receives no notifications from Postgres. */
  readonly lacksNotifications: boolean;
}

/** A stored report. */
export interface ProcessReport {
  readonly instance: string;
  readonly service: string;
  readonly host: string;
  readonly facts: ProcessFacts;
  readonly ageMs: number;
}

/** Store a process's report, replacing the previous one. */
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

/** Delete the report of a process that ends. */
export async function forgetProcessReport(db: Db, instance: string): Promise<void> {
  await db.deleteFrom("process_reports").where("instance", "=", instance).execute();
}

/** List the reports of processes that hold a lease, sorted by instance. */
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
