import { sql } from "kysely";
import { identifyCluster } from "../database/cluster.ts";
import type { Db, Store } from "../database/store.ts";
import type { LeaseClaim } from "../leases/leases.ts";

/** The relay's cursor, as the holder of the relay's lease knows it. */
export interface RelayCursor {
  /** All events up to this revision have been acknowledged. */
  readonly revision: bigint;
  /**
   * The generation of the cursor. A save with an older generation has no effect: its holder was replaced, or the
   * cursor was set back.
   */
  readonly generation: number;
}

/** The state of the relay. */
export interface RelayState extends RelayCursor {
  /** Wall time of the last save; the time when the row was created if nothing was ever relayed. */
  readonly savedAtMs: number;
  /** The last revision of the event log. */
  readonly head: bigint;
  /** How long the oldest unacknowledged event has been in the log; 0 when there is none. */
  readonly waitingMs: number;
  /** The instance that holds the relay's lease; null when none does. */
  readonly holder: string | null;
}

/** The result of setting the cursor back. */
export interface RelayRewind {
  readonly before: bigint;
  readonly after: bigint;
}

/** The name of the relay's lease. */
export const RELAY_LEASE = "relay-events";

/**
 * Start to relay. Returns the cursor with a new generation, so that saves by earlier holders have no effect. Returns
 * null when this process no longer holds the lease.
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
 * Record that everything up to `revision` was acknowledged, even if a higher revision was recorded before. Returns
 * false and changes nothing when the generation is outdated, or when the database holds another history of the log, in
 * which the same revisions mean other events.
 */
export function saveRelay(
  { db }: Pick<Store, "db">,
  { revision, generation, logId }: RelayCursor & { readonly logId: string },
): Promise<boolean> {
  // Use a transaction, which stays on one server even behind a pooler. So the check applies to the database that the
  // cursor is written to.
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
 * Relay everything above `revision` again. A cursor that is already below `revision` does not move. The holder notices
 * the change because the generation is new.
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
  if (row === undefined) throw new Error("the relay row is missing");
  return row;
}

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
  if (row === undefined) throw new Error("the relay row is missing");
  const { savedAt, ...state } = row;
  return { ...state, savedAtMs: savedAt.getTime() };
}
