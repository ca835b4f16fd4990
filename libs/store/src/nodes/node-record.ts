import {
  type Connection,
  deriveScheduling,
  duplicatedHealth,
  effectiveHealth,
  type Hardware,
  type Health,
  type HealthHistory,
  type Hold,
  hardwareOf,
  type Json,
  type Label,
  latestPair,
  type MachineSighting,
  type Mark,
  type Membership,
  type NodeType,
  rebootedHealth,
  type Scheduling,
  type Trouble,
  troubledHealth,
} from "@rollcall/domain";
import { approvedHardwareIn } from "./hardware.ts";

/** What a node says about itself, opaque to the store. */
export type JsonInfo = { readonly [key: string]: Json };

/** The figures of a node's information that listings sort and add up. */
export interface InfoSummary {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
  readonly gpus: number;
}

/** How a node joined. */
export interface NodeJoining {
  /** The join token that admitted it; null without one. It may have been forgotten since. */
  readonly tokenId: string | null;
  /** Whether it is removed when it has left. */
  readonly ephemeral: boolean;
  /** Whether it joined without a token while that was warned of. */
  readonly withoutToken: boolean;
}

/** All that the record knows of one node. */
export interface NodeRecord {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: Membership;
  readonly connection: Connection;
  /**
   * What counts: the operator's mark if there is one, else what was detected, or that the node flaps; with the reason
   * that two machines are this node while they are, or what is wrong with its hardware.
   */
  readonly health: Health;
  /** Without the mark, and whether it flaps or not. */
  readonly detectedHealth: Health;
  /** Without the mark; that it flaps, if it does. */
  readonly recordedHealth: Health;
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
  /** Since when that has been its key; null without one. */
  readonly keySinceMs: number | null;
  /** The key that the node has offered and not used yet. */
  readonly nextKeyFingerprint: string | null;
  /** Since when an operator has wanted the node to rotate its key; null when nobody does. */
  readonly keyRotationRequiredSinceMs: number | null;
  readonly joining: NodeJoining;
  /** Changes with every write of registry or admin to this node; never comes again, not even after a delete. */
  readonly etag: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** The hardware that was approved, or accepted later; null as long as the node had said nothing of it. */
  readonly approvedHardware: Hardware | null;
  /** What is missing of it. */
  readonly missingHardware: readonly Trouble[];
  /** What is wrong with its GPUs, as its samples have it. */
  readonly gpuTroubles: readonly Trouble[];
  /** How often its health changed of late. */
  readonly history: HealthHistory;
  /** When it rebooted unexpectedly, if that was of late. */
  readonly rebootedAtMs: number | null;
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
  readonly join_token_id: string | null;
  readonly ephemeral: boolean;
  readonly joined_without_token: boolean;
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
  readonly key_since: Date | null;
  readonly next_fingerprint: string | null;
  readonly rotation_requested_at: Date | null;
  readonly duplicated_since: Date | null;
  readonly machines: readonly MachineSighting[];
  readonly labels: readonly Label[] | null;
  readonly approved_hardware: unknown;
  readonly missing_hardware: readonly Trouble[];
  readonly gpu_troubles: readonly Trouble[];
  readonly health_changes: readonly number[];
  readonly flapping_since: Date | null;
  readonly detected: Health | null;
  readonly rebooted_at: Date | null;
}

/** What the columns of a row say. */
export function toNodeRecord(row: NodeRow): NodeRecord {
  const mark = toMark(row);
  const createdAtMs = row.created_at.getTime();
  return {
    id: row.id,
    type: row.type,
    membership: toMembership(row),
    connection: toConnection(row),
    health: shownHealth(effectiveHealth(toHealth(row), mark), row),
    detectedHealth: toDetectedHealth(row),
    recordedHealth: toHealth(row),
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
    keySinceMs: row.key_since?.getTime() ?? null,
    nextKeyFingerprint: row.next_fingerprint,
    keyRotationRequiredSinceMs: row.rotation_requested_at?.getTime() ?? null,
    joining: {
      tokenId: row.join_token_id,
      ephemeral: row.ephemeral,
      withoutToken: row.joined_without_token,
    },
    etag: `${createdAtMs.toString(36)}-${row.version}`,
    createdAtMs,
    updatedAtMs: row.updated_at.getTime(),
    approvedHardware: hardwareOf(approvedHardwareIn(row) ?? undefined),
    missingHardware: row.missing_hardware,
    gpuTroubles: row.gpu_troubles,
    history: toHistory(row),
    rebootedAtMs: row.rebooted_at?.getTime() ?? null,
    session: { epoch: row.epoch, replicaId: row.replica_id, address: row.address },
  };
}

/** The columns of a membership as one value. */
export function toMembership(
  row: Pick<
    NodeRow,
    "membership" | "membership_since" | "membership_reason" | "membership_message" | "membership_actor"
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
    "connection" | "connection_since" | "connection_reason" | "connection_message" | "connection_actor"
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

/** What was detected of a node, whether it flaps or not. */
export function toDetectedHealth(row: Parameters<typeof toHealth>[0] & Pick<NodeRow, "detected">): Health {
  return row.detected ?? toHealth(row);
}

/** The columns of a node's changes of health as one value. */
export function toHistory(row: Pick<NodeRow, "health_changes" | "flapping_since">): HealthHistory {
  return {
    changes: row.health_changes,
    flappingSinceMs: row.flapping_since?.getTime() ?? null,
  };
}

/** The columns of a health as one value: as it was detected, or that the node flaps. */
export function toHealth(
  row: Pick<NodeRow, "health" | "health_since" | "health_reason" | "health_message" | "health_actor">,
): Health {
  return {
    state: row.health,
    sinceMs: row.health_since.getTime(),
    reason: row.health_reason,
    message: row.health_message,
    actor: row.health_actor,
  };
}

/** An operator's word comes before ours; else it matters more who a node is than how it was heard. */
function shownHealth(health: Health, row: NodeRow): Health {
  if (row.mark_since !== null) return health;
  const machines = row.duplicated_since === null ? null : latestPair(row.machines);
  if (machines !== null) return duplicatedHealth(health, machines);
  const troubled = troubledHealth(health, [...row.missing_hardware, ...row.gpu_troubles]);
  return row.rebooted_at === null ? troubled : rebootedHealth(troubled);
}

function toMark(row: NodeRow): Mark | null {
  if (row.mark_since === null || row.mark_message === null || row.mark_actor === null) return null;
  return {
    sinceMs: row.mark_since.getTime(),
    message: row.mark_message,
    actor: row.mark_actor,
  };
}
