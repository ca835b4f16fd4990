import { randomBytes } from "node:crypto";
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.ts";
import { isNotTold } from "./store-error.ts";

/** The identity of this cluster. */
export interface ClusterIdentity {
  readonly clusterId: string;
  /** The secret that all processes of the cluster share, 32 bytes. */
  readonly secret: Buffer;
  /** Identifies this history of the event log. */
  readonly logId: string;
}

const SECRET_BYTES = 32;

/**
 * Read the cluster's identity; the first process creates it. The log gets a new id when the database turns out to be a
 * different copy: a restored one, a clone, or a promoted standby, which may lack the last revisions.
 */
export async function identifyCluster(db: Kysely<Database>): Promise<ClusterIdentity> {
  const origin = await readOrigin(db);
  const known = await readIdentity(db);
  if (known?.log_origin === origin) return toIdentity(known);
  await db
    .insertInto("cluster")
    .values({ secret: randomBytes(SECRET_BYTES), log_origin: origin })
    .onConflict((conflict) => conflict.column("singleton").doNothing())
    .execute();
  await db
    .updateTable("cluster")
    .set({ log_id: sql<string>`gen_random_uuid()`, log_origin: origin })
    .where("log_origin", "<>", origin)
    .execute();
  const row = await readIdentity(db);
  if (row === undefined) throw new Error("the cluster row is missing");
  return toIdentity(row);
}

function readIdentity(db: Kysely<Database>) {
  return db.selectFrom("cluster").select(["cluster_id", "secret", "log_id", "log_origin"]).executeTakeFirst();
}

/** Identify the server, its timeline and the database. These change on a restore, a promotion or a clone. */
export async function readOrigin(db: Kysely<Database> | Kysely<unknown>): Promise<string> {
  const database = sql`(select oid::text from pg_database where datname = current_database())`;
  const server = sql`
    (select system_identifier::text from pg_control_system()) || '/' ||
    left(pg_walfile_name(pg_current_wal_lsn()), 8)`;
  const read = async (origin: RawBuilder<unknown>): Promise<string> => {
    const { rows } = await sql<{ origin: string }>`select ${origin} as origin`.execute(db as Kysely<unknown>);
    return rows[0]?.origin ?? "";
  };
  try {
    return await read(sql`${server} || '/' || ${database}`);
  } catch (error) {
    // Identify only the database if the server does not expose these values, as on some managed servers. Then only a
    // clone within the same server is detected.
    if (!isNotTold(error)) throw error;
    return read(database);
  }
}

function toIdentity(row: {
  readonly cluster_id: string;
  readonly secret: Buffer;
  readonly log_id: string;
}): ClusterIdentity {
  return { clusterId: row.cluster_id, secret: row.secret, logId: row.log_id };
}
