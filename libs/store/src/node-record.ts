import {
  type Connection,
  deriveScheduling,
  effectiveHealth,
  type Health,
  type Hold,
  type Json,
  type Label,
  type Mark,
  type Membership,
  type NodeType,
  type Scheduling,
} from "@rollcall/domain";

/** What a node says about itself, opaque to the store. */
export type JsonInfo = { readonly [key: string]: Json };

/** The figures of a node's information that listings sort and add up. */
export interface InfoSummary {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** All that the record knows of one node. */
export interface NodeRecord {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /** What counts: the operator's mark if there is one, else what was detected. */
  readonly health: Health;
  readonly detectedHealth: Health;
  readonly mark: Mark | null;
  readonly holds: readonly Hold[];
  readonly scheduling: Scheduling;
  readonly info: JsonInfo | null;
  readonly infoDigest: string | null;
  readonly summary: InfoSummary;
  /** Every tier, sorted by key, then tier. */
  readonly labels: readonly Label[];
  /** Null for a node without a key (orchestrators). */
  readonly keyFingerprint: string | null;
  /** Changes with every write of registry or admin to this node; never comes again, not even after a delete. */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly session: {
    readonly epoch: number;
    /** Who holds the session; null for a node that never connected. */
    readonly replicaId: string | null;
    /** The peer as `host:port`, or null. */
    readonly address: string | null;
  };
}

/** A node as `selectNodes` reads it. */
export interface NodeRow {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership["state"];
  readonly membership_since: Date;
  readonly membership_reason: string;
  readonly membership_message: string;
  readonly membership_actor: string;
  readonly holds: readonly Hold[];
  readonly eligible_since: Date;
  readonly mark_since: Date | null;
  readonly mark_message: string | null;
  readonly mark_actor: string | null;
  readonly info: unknown;
  readonly info_digest: string | null;
  readonly cores: number;
  readonly memory_bytes: bigint;
  readonly disk_bytes: bigint;
  readonly gpus: number;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly epoch: number;
  readonly replica_id: string | null;
  readonly address: string | null;
  readonly connection: Connection["state"];
  readonly connection_since: Date;
  readonly connection_reason: string;
  readonly connection_message: string;
  readonly connection_actor: string;
  readonly health: Health["state"];
  readonly health_since: Date;
  readonly health_reason: string;
  readonly health_message: string;
  readonly health_actor: string;
  readonly fingerprint: string | null;
  readonly labels: readonly Label[] | null;
}

/** What the columns of a row say. */
export function toNodeRecord(row: NodeRow): NodeRecord {
  const mark = toMark(row);
  const detectedHealth = toHealth(row);
  const createdAtMs = row.created_at.getTime();
  return {
    id: row.id,
    type: row.type,
    membership: toMembership(row),
    connection: toConnection(row),
    health: effectiveHealth(detectedHealth, mark),
    detectedHealth,
    mark,
    holds: row.holds,
    scheduling: deriveScheduling(row.holds, row.eligible_since.getTime()),
    info: row.info as JsonInfo | null,
    infoDigest: row.info_digest,
    summary: {
      cores: row.cores,
      memoryBytes: Number(row.memory_bytes),
      diskBytes: Number(row.disk_bytes),
      gpus: row.gpus,
    },
    labels: row.labels ?? [],
    keyFingerprint: row.fingerprint,
    etag: `${createdAtMs.toString(36)}-${row.version}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
    session: { epoch: row.epoch, replicaId: row.replica_id, address: row.address },
  };
}

/** The columns of a membership as one value. */
export function toMembership(
  row: Pick<
    NodeRow,
    | "membership"
    | "membership_since"
    | "membership_reason"
    | "membership_message"
    | "membership_actor"
  >,
): Membership {
  return {
    state: row.membership,
    sinceMs: row.membership_since.getTime(),
    reason: row.membership_reason,
    message: row.membership_message,
    actor: row.membership_actor,
  };
}

/** The columns of a connection as one value. */
export function toConnection(
  row: Pick<
    NodeRow,
    | "connection"
    | "connection_since"
    | "connection_reason"
    | "connection_message"
    | "connection_actor"
  >,
): Connection {
  return {
    state: row.connection,
    sinceMs: row.connection_since.getTime(),
    reason: row.connection_reason,
    message: row.connection_message,
    actor: row.connection_actor,
  };
}

/** The columns of a detected health as one value. */
export function toHealth(
  row: Pick<
    NodeRow,
    "health" | "health_since" | "health_reason" | "health_message" | "health_actor"
  >,
): Health {
  return {
    state: row.health,
    sinceMs: row.health_since.getTime(),
    reason: row.health_reason,
    message: row.health_message,
    actor: row.health_actor,
  };
}

function toMark(row: NodeRow): Mark | null {
  if (row.mark_since === null || row.mark_message === null || row.mark_actor === null) return null;
  return {
    sinceMs: row.mark_since.getTime(),
    message: row.mark_message,
    actor: row.mark_actor,
  };
}
