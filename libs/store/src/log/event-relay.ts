import { sql } from "kysely";
import { identifyCluster } from "../database/cluster.ts";
import type { Db, Store } from "../database/store.ts";
import type { LeaseClaim } from "../leases/leases.ts";

/** The cursor of the relay, as one holder has it. */
export interface RelayCursor {
  /** Everything up to here was acknowledged. */
  readonly revision: bigint;
  /** A save under an older one takes no effect: its holder was replaced, or the cursor was set back. */
  readonly generation: number;
}

/** How the relay stands. */
export interface RelayState extends RelayCursor {
  /** Wall time of the last save; of the creation when nothing was ever relayed. */
  readonly savedAtMs: number;
  /** The last revision of the log. */
  readonly head: bigint;
  /** How long the oldest event that was not acknowledged has been in the log; 0 when there is none. */
  readonly waitingMs: number;
  /** The instance that holds the lease; null when none does. */
  readonly holder: string | null;
}

/** What happened to the cursor when it was set back. */
export interface RelayRewind {
  readonly before: bigint;
  readonly after: bigint;
}

/** The name of the relay's lease. */
export const RELAY_LEASE = "relay-events";

/**
 * Begin to relay: the cursor, under a generation of its own, so that nothing that an earlier holder still saves takes
 * effect. Null when the lease is not held any more.
 */
export async function openRelay(
  db: Db,
  { name, instance }: Pick<LeaseClaim, "name" | "instance">,
): Promise<RelayCursor | null> {
  const { rows } = await sql<RelayCursor>`
    with held as (
      select name from leases where name = ${name} and instance = ${instance} for share
    )
    update event_relay set generation = generation + 1
    from held
    returning revision, generation`.execute(db);
  return rows[0] ?? null;
}

/**
 * Note that everything up to `revision` of a log was acknowledged, or that less was than had been thought. False, and
 * nothing changes, when the generation is over, or the database holds another history of the log, whose revisions are
 * other events.
 */
export function saveRelay(
  { db }: Pick<Store, "db">,
  { revision, generation, logId }: RelayCursor & { readonly logId: string },
): Promise<boolean> {
  // One transaction is one server, behind a pooler too: what is asked of it is true of where the cursor is written.
  return db.transaction().execute(async (connection) => {
    if ((await identifyCluster(connection)).logId !== logId) return false;
    const { numUpdatedRows } = await connection
      .updateTable("event_relay")
      .set({ revision, saved_at: sql<Date>`now()` })
      .where("generation", "=", generation)
      .where(sql<boolean>`${revision} <= (select coalesce(max(revision), 0) from events)`)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  });
}

/**
 * Have everything above `revision` relayed again; a cursor that is not that far stays where it is. The holder learns it
 * by the generation.
 */
export async function rewindRelay(db: Db, revision: bigint): Promise<RelayRewind> {
  const { rows } = await sql<RelayRewind>`
    with old as (select revision from event_relay for update)
    update event_relay
    set
      revision = least(old.revision, ${revision}),
      generation = generation + (case when ${revision} < old.revision then 1 else 0 end)
    from old
    returning old.revision as before, event_relay.revision as after`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the row of the relay is gone");
  return row;
}

/** How the relay stands. */
export async function readRelay(db: Db): Promise<RelayState> {
  const { rows } = await sql<Omit<RelayState, "savedAtMs"> & { readonly savedAt: Date }>`
    select
      revision,
      generation,
      saved_at as "savedAt",
      (select coalesce(max(revision), 0) from events) as head,
      coalesce((
        select extract(epoch from clock_timestamp() - e.at) * 1000
        from events as e where e.revision > event_relay.revision order by e.revision limit 1
      ), 0)::double precision as "waitingMs",
      (select instance from leases where name = ${RELAY_LEASE}) as holder
    from event_relay`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error("the row of the relay is gone");
  const { savedAt, ...state } = row;
  return { ...state, savedAtMs: savedAt.getTime() };
}
