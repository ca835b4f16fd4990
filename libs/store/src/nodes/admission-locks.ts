import { caselessId } from "@rollcall/domain";
import { sql } from "kysely";
import { BANS_LOCK } from "../access/bans.ts";
import type { Tx } from "../database/store.ts";

/**
 * Begin to admit nodes under these ids: until this transaction ends no ban is placed, and nobody else admits a node
 * under an id of the same letters, in whatever case. Comes before any row is locked, because whoever places a ban locks
 * rows after it; look at the record afterwards.
 */
export async function beginAdmission(tx: Tx, ids: readonly string[]): Promise<void> {
  // Names in one order, so that two who want the same ones wait for each other and never in a circle.
  await sql`
    with bans as materialized (select pg_advisory_xact_lock_shared(${BANS_LOCK}))
    select pg_advisory_xact_lock(${NAMES_LOCK}, names.key)
    from bans, (
      select distinct hashtext(name) as key
      from unnest(${ids.map(caselessId)}::text[]) as name
      order by key
    ) as names`.execute(tx);
}

/**
 * Names the locks of ids, each of which has its hash besides; any number will do that no other pair of numbers begins
 * with.
 */
const NAMES_LOCK = 5_226_012;
