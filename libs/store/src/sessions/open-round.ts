import { type AgentSighting, connectionAfter, MOST_SIGHTINGS, type SuspectedReboot } from "@rollcall/domain";
import { sql } from "kysely";
import { rowsFrom } from "../database/batches.ts";
import { PREPARED } from "../database/pool.ts";
import type { Tx } from "../database/store.ts";
import type { toConnection, toHealth, toMembership } from "../nodes/node-rows.ts";

/** An agent's hello, after its signature was verified. */
export interface SessionHello {
  readonly nodeId: string;
  readonly replicaId: string;
  /** See AgentSighting. */
  readonly instanceId: string;
  readonly bootId: string;
  readonly machineFingerprint: string;
  /** The fingerprint of the key that signed the hello. */
  readonly keyFingerprint: string;
  /** The peer's address as `host:port`. */
  readonly address: string;
}

/** The membership columns of a node. */
type MembershipColumns = Parameters<typeof toMembership>[0];
type ConnectionColumns = Parameters<typeof toConnection>[0];
type HealthColumns = Parameters<typeof toHealth>[0];

/** The columns of a session, with its node's membership. */
export type OwnedSessionRow = MembershipColumns &
  ConnectionColumns &
  HealthColumns & { readonly node_id: string; readonly epoch: number; readonly marked: boolean };

type OpenedRow = OwnedSessionRow & {
  /** The key that signed the hello. */
  readonly key_fingerprint: string;
  /** The key that the signing key has just replaced; null for none. */
  readonly retired_fingerprint: string | null;
  readonly machines: readonly AgentSighting[];
  readonly machines_before: readonly AgentSighting[];
  readonly duplicated_since: Date | null;
  readonly reboot_suspected: SuspectedReboot | null;
  readonly replica_id: string | null;
  readonly boot_id: string | null;
  readonly machine_fingerprint: string | null;
};

/** The result of one hello. The columns of a missing node are null. If no session was opened, the epoch is null. */
export type OpeningRow = (
  | OpenedRow
  | (MembershipColumns & { readonly epoch: null; readonly key_accepted: boolean })
  | { readonly membership: null; readonly epoch: null }
) & {
  readonly node_id: string;
  readonly info_digest: string | null;
  readonly revision: bigint;
  readonly now: Date;
};

/**
 * Open a session for each of these hellos, which belong to different nodes. This is one statement with one snapshot,
 * so that the membership always matches the revision, whatever other transactions commit while it waits for row locks.
 *
 * It locks sessions, then keys, in order of id, and reads their previous values under the lock. If two hellos with
 * different keys race, the first one makes its key the node's only key, and a hello with the previous key opens
 * nothing.
 *
 * Each step passes its rows on to the next step. The planner does not know the number of hellos, and would join two
 * separate steps by comparing every pair of rows.
 */
export async function openRound(tx: Tx, hellos: readonly SessionHello[]): Promise<OpeningRow[]> {
  const { rows } = await sql<OpeningRow>`${PREPARED}
    with hello as (select * from ${rowsFrom(hellos, HELLO_COLUMNS)} as h),
    before as (
      select hello.*, s as session
      from hello
      join node_sessions as s on s.node_id = hello."nodeId" and s.node_type = 'COMPUTE'
      order by s.node_id
      for no key update of s
    ),
    key as (
      select before.*, i.fingerprint, i.fingerprint <> before."keyFingerprint" as is_next
      from before
      join node_identities as i on i.node_id = before."nodeId"
      where before."keyFingerprint" in (i.fingerprint, i.next_fingerprint)
      order by i.node_id
      for no key update of i
    ),
    opened as (
      update node_sessions as s
      set
        epoch = s.epoch + 1,
        replica_id = key."replicaId",
        boot_id = key."bootId",
        machine_fingerprint = key."machineFingerprint",
        address = key.address,
        opened_at = now(),
        machines = case
          when (s.machines -> -1 ->> 'instanceId', s.machines -> -1 ->> 'bootId', s.machines -> -1 ->> 'fingerprint')
            is not distinct from (key."instanceId", key."bootId", key."machineFingerprint") then s.machines
          else (
            select jsonb_agg(it order by n)
            from jsonb_array_elements(
              s.machines || jsonb_build_object(
                'instanceId', key."instanceId", 'bootId', key."bootId", 'fingerprint', key."machineFingerprint",
                'address', key.address, 'atMs', floor(extract(epoch from now()) * 1000),
                'tookOver', s.connection = ${OPENED.state}
              )
            ) with ordinality as sighting (it, n)
            where n > jsonb_array_length(s.machines) + 1 - ${MOST_SIGHTINGS}
          )
        end,
        connection = ${OPENED.state},
        connection_since = case when ${STAYS} then s.connection_since else now() end,
        connection_reason = case when ${STAYS} then s.connection_reason else ${OPENED.reason} end,
        connection_message = case when ${STAYS} then s.connection_message else ${OPENED.message} end,
        connection_actor = case when ${STAYS} then s.connection_actor else 'replica:' || key."replicaId" end
      from key
      join nodes on nodes.id = key."nodeId" and nodes.membership <> 'REJECTED'
      where s.node_id = key."nodeId"
      returning s.node_id, s.epoch, s.machines, key.session, key.fingerprint, key.is_next
    ),
    promoted as (
      update node_identities as i
      set
        public_key = i.next_public_key, fingerprint = i.next_fingerprint,
        next_public_key = null, next_fingerprint = null,
        rotated_at = now(), rotation_requested_at = null
      from opened
      where i.node_id = opened.node_id and opened.is_next
    )
    select
      hello."nodeId" as node_id, opened.epoch, opened.machines,
      (opened.session).machines as machines_before, (opened.session).duplicated_since,
      (opened.session).reboot_suspected,
      hello."keyFingerprint" as key_fingerprint, key."nodeId" is not null as key_accepted,
      case when opened.is_next then opened.fingerprint end as retired_fingerprint,
      now()::timestamptz(3) as now,
      (select coalesce(max(revision), 0) from events) as revision,
      nodes.info_digest, nodes.membership, nodes.membership_since, nodes.membership_reason,
      nodes.membership_message, nodes.membership_actor,
      (opened.session).replica_id, (opened.session).boot_id, (opened.session).machine_fingerprint,
      (opened.session).marked,
      (opened.session).connection, (opened.session).connection_since, (opened.session).connection_reason,
      (opened.session).connection_message, (opened.session).connection_actor,
      (opened.session).health, (opened.session).health_since, (opened.session).health_reason,
      (opened.session).health_message, (opened.session).health_actor
    from hello
    left join nodes on nodes.id = hello."nodeId" and nodes.type = 'COMPUTE'
    left join key on key."nodeId" = nodes.id
    left join opened on opened.node_id = nodes.id`.execute(tx);
  return rows;
}

const HELLO_COLUMNS = sql`
  "nodeId" text, "replicaId" text, "instanceId" text, "bootId" text, "machineFingerprint" text,
  "keyFingerprint" text, address text`;
const OPENED = connectionAfter("opened", { actor: "", atMs: 0 });
/**
 * Whether the connection state is unchanged. If so, it keeps its time, reason and actor, because no event would report
 * new ones.
 */
const STAYS = sql`s.connection = ${OPENED.state}`;
