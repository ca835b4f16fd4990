import { randomBytes } from "node:crypto";
import { type Kysely, type RawBuilder, sql } from "kysely";
import type { Database } from "./schema.ts";
import { isNotTold } from "./store-error.ts";

/** Who this cluster is. */
export interface ClusterIdentity {
  readonly clusterId: string;
  /** Shared by all its processes, 32 bytes. */
  readonly secret: Buffer;
  /** Names this history of the log. */
  readonly logId: string;
}

const SECRET_BYTES = 32;

/**
 * The cluster's identity, made by the first process that asks. The log gets a new id when the database turns out to be
 * another copy than before: restored, cloned, or a standby that was promoted, whose last revisions may have been lost.
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
  if (row === undefined) throw new Error("the row of the cluster is gone");
  return toIdentity(row);
}

function readIdentity(db: Kysely<Database>) {
  return db.selectFrom("cluster").select(["cluster_id", "secret", "log_id", "log_origin"]).executeTakeFirst();
}

/** Server, timeline and database: what a restore, a promotion and a clone change. */
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
    // Some managed servers keep this to themselves: then only a clone within one server shows.
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
