import {
  type Connection,
  type ConnectionState,
  connectionAfter,
  connectionEvent,
  type Health,
  type Membership,
  type NewEvent,
} from "@rollcall/domain";
import { sql } from "kysely";
import type { Change } from "./change.ts";
import { toConnection, toHealth, toMembership } from "./node-record.ts";
import { inRounds } from "./rounds.ts";
import type { Db, Tx } from "./store.ts";

/** A verified hello of an agent. */
export interface SessionHello {
  readonly nodeId: string;
  readonly replicaId: string;
  readonly bootId: string;
  readonly machineFingerprint: string;
  /** The peer as `host:port`. */
  readonly address: string;
}

/** What a hello led to. */
export type SessionOpening =
  | {
      readonly outcome: "OPENED";
      readonly nodeId: string;
      readonly epoch: number;
      readonly membership: Membership;
      readonly marked: boolean;
      readonly connectionBefore: ConnectionState;
      /** Who held the session before, or null; and from which machine. */
      readonly previous: SessionOrigin;
      /** Detected, before any mark; opening a session does not change it. */
      readonly detectedHealth: Health;
      readonly infoDigest: string | null;
      /** Membership was read as of this revision: apply feed events above it. */
      readonly revision: bigint;
    }
  | {
      /** Nothing was written: the node is rejected. */
      readonly outcome: "REJECTED";
      readonly nodeId: string;
      readonly membership: Membership;
      readonly revision: bigint;
    }
  | { readonly outcome: "UNKNOWN_NODE"; readonly nodeId: string; readonly revision: bigint };

/** Where a session came from. */
export interface SessionOrigin {
  readonly replicaId: string | null;
  readonly bootId: string | null;
  readonly machineFingerprint: string | null;
}

/** A node that a replica holds. */
export interface HeldNode {
  readonly nodeId: string;
  readonly epoch: number;
  readonly connection: Connection;
  /** Before any mark. */
  readonly detectedHealth: Health;
  readonly marked: boolean;
  readonly membership: Membership;
}

/**
 * Open a session for each hello: the next epoch, CONNECTED, and an event, for the caller to append, for those that were not.
 * One answer for each hello, in their order; two of one node get two epochs.
 */
export async function openSessions(
  tx: Tx,
  hellos: readonly SessionHello[],
): Promise<Change<readonly SessionOpening[]>> {
  const openings = new Map<SessionHello, SessionOpening>();
  const events: NewEvent[] = [];
  for (const round of inRounds(hellos, (hello) => hello.nodeId)) {
    const rows = await openRound(tx, round);
    const byNode = new Map(rows.map((row) => [row.node_id, row]));
    for (const hello of round) {
      const row = byNode.get(hello.nodeId);
      if (row === undefined) throw new Error("a hello got no answer");
      openings.set(hello, toOpening(row));
      if (row.epoch !== null && row.connection === "DISCONNECTED") {
        const atMs = row.now.getTime();
        const actor = `replica:${hello.replicaId}`;
        const after = connectionAfter("opened", { actor, atMs });
        events.push(connectionEvent({ subject: row.node_id, before: toConnection(row), after }));
      }
    }
  }
  return { result: hellos.flatMap((hello) => openings.get(hello) ?? []), events };
}

/** The compute nodes whose session belongs to this replica, in order of id. */
export async function heldBy(db: Db, replicaId: string): Promise<readonly HeldNode[]> {
  const rows = await db
    .selectFrom("node_sessions as s")
    .innerJoin("nodes as n", "n.id", "s.node_id")
    .selectAll("s")
    .select([
      "n.membership",
      "n.membership_since",
      "n.membership_reason",
      "n.membership_message",
      "n.membership_actor",
    ])
    .where("s.replica_id", "=", replicaId)
    .where("s.node_type", "=", "COMPUTE")
    .orderBy("s.node_id")
    .execute();
  return rows.map(toHeldNode);
}

/** What the columns of a session and its node's membership say. */
export function toHeldNode(row: HeldRow): HeldNode {
  return {
    nodeId: row.node_id,
    epoch: row.epoch,
    connection: toConnection(row),
    detectedHealth: toHealth(row),
    marked: row.marked,
    membership: toMembership(row),
  };
}

type MembershipColumns = Parameters<typeof toMembership>[0];
type ConnectionColumns = Parameters<typeof toConnection>[0];
type HealthColumns = Parameters<typeof toHealth>[0];

type HeldRow = MembershipColumns &
  ConnectionColumns &
  HealthColumns & { readonly node_id: string; readonly epoch: number; readonly marked: boolean };

type OpenedRow = HeldRow & {
  readonly replica_id: string | null;
  readonly boot_id: string | null;
  readonly machine_fingerprint: string | null;
};

/** Columns of a node that is not there are null, and so is the epoch of a session that was not opened. */
type OpeningRow = (
  | OpenedRow
  | (MembershipColumns & { readonly epoch: null })
  | { readonly membership: null; readonly epoch: null }
) & {
  readonly node_id: string;
  readonly info_digest: string | null;
  readonly revision: bigint;
  readonly now: Date;
};

/**
 * One statement and hence one snapshot: the membership it reads is that of the revision it reads, whatever commits while it
 * waits for row locks. What the session was before is read under its lock, in order of id.
 */
async function openRound(tx: Tx, hellos: readonly SessionHello[]): Promise<OpeningRow[]> {
  const { rows } = await sql<OpeningRow>`
    with hello as (
      select * from jsonb_to_recordset(${JSON.stringify(hellos)}::jsonb) as h (
        "nodeId" text, "replicaId" text, "bootId" text, "machineFingerprint" text, address text
      )
    ),
    before as (
      select s.*
      from node_sessions as s
      where s.node_id in (select "nodeId" from hello) and s.node_type = 'COMPUTE'
      order by s.node_id
      for no key update
    ),
    opened as (
      update node_sessions as s
      set
        epoch = s.epoch + 1,
        replica_id = hello."replicaId",
        boot_id = hello."bootId",
        machine_fingerprint = hello."machineFingerprint",
        address = hello.address,
        opened_at = now(),
        connection = ${OPENED.state},
        connection_since =
          case when s.connection = ${OPENED.state} then s.connection_since else now() end,
        connection_reason = ${OPENED.reason},
        connection_message = ${OPENED.message},
        connection_actor = 'replica:' || hello."replicaId"
      from hello
      join before on before.node_id = hello."nodeId"
      join nodes on nodes.id = hello."nodeId" and nodes.membership <> 'REJECTED'
      where s.node_id = hello."nodeId"
      returning s.node_id, s.epoch
    )
    select
      hello."nodeId" as node_id, opened.epoch, now()::timestamptz(3) as now,
      (select coalesce(max(revision), 0) from events) as revision,
      nodes.info_digest, nodes.membership, nodes.membership_since, nodes.membership_reason,
      nodes.membership_message, nodes.membership_actor,
      before.replica_id, before.boot_id, before.machine_fingerprint, before.marked,
      before.connection, before.connection_since, before.connection_reason,
      before.connection_message, before.connection_actor,
      before.health, before.health_since, before.health_reason,
      before.health_message, before.health_actor
    from hello
    left join nodes on nodes.id = hello."nodeId" and nodes.type = 'COMPUTE'
    left join before on before.node_id = nodes.id
    left join opened on opened.node_id = nodes.id`.execute(tx);
  return rows;
}

const OPENED = connectionAfter("opened", { actor: "", atMs: 0 });

function toOpening(row: OpeningRow): SessionOpening {
  const { node_id: nodeId, revision } = row;
  if (row.epoch !== null) {
    return {
      outcome: "OPENED",
      nodeId,
      epoch: row.epoch,
      membership: toMembership(row),
      marked: row.marked,
      connectionBefore: row.connection,
      previous: {
        replicaId: row.replica_id,
        bootId: row.boot_id,
        machineFingerprint: row.machine_fingerprint,
      },
      detectedHealth: toHealth(row),
      infoDigest: row.info_digest,
      revision,
    };
  }
  if (row.membership === "REJECTED") {
    return { outcome: "REJECTED", nodeId, membership: toMembership(row), revision };
  }
  // Not there, or removed while its session's lock was waited for.
  return { outcome: "UNKNOWN_NODE", nodeId, revision };
}
