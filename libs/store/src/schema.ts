import type {
  ConnectionState,
  EventType,
  HealthState,
  Hold,
  LabelTier,
  MembershipState,
  NodeType,
  SchedulingState,
} from "@rollcall/domain";
import type { ColumnType, Generated } from "kysely";

/** A point in time. Written as a Date or by Postgres itself; kept in whole milliseconds. */
type Timestamp = ColumnType<Date, Date | undefined, Date>;
/** JSON that Postgres hands back parsed and takes as text. */
type JsonColumn<T> = ColumnType<T, string, string>;
/** A column that Postgres computes. */
type Computed<T> = ColumnType<T, never, never>;

/** One row: what this cluster is. */
export interface ClusterTable {
  readonly singleton: Generated<boolean>;
  readonly cluster_id: Generated<string>;
  readonly secret: Buffer;
  readonly log_id: Generated<string>;
  readonly log_origin: string;
  readonly compacted_revision: Generated<bigint>;
  readonly created_at: Timestamp;
}

/** What is decided about a node and what it says about itself. Written by registry and admin. */
export interface NodesTable {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly membership_since: Timestamp;
  readonly membership_reason: string;
  readonly membership_message: string;
  readonly membership_actor: string;
  readonly holds: ColumnType<readonly Hold[], string | undefined, string>;
  readonly scheduling: Computed<SchedulingState>;
  readonly eligible_since: Timestamp;
  readonly mark_since: Date | null;
  readonly mark_message: string | null;
  readonly mark_actor: string | null;
  readonly info: ColumnType<unknown, string | null | undefined, string>;
  readonly info_digest: string | null;
  readonly cores: Generated<number>;
  readonly memory_bytes: Generated<bigint>;
  readonly disk_bytes: Generated<bigint>;
  readonly gpus: Generated<number>;
  readonly version: Generated<number>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
}

/** The key by which a node proves that it is itself. */
export interface NodeIdentitiesTable {
  readonly node_id: string;
  readonly public_key: Buffer;
  readonly fingerprint: string;
  readonly created_at: Timestamp;
}

/** Labels of every tier; `effective` marks the one of each key that counts. */
export interface NodeLabelsTable {
  readonly node_id: string;
  readonly tier: LabelTier;
  readonly key: string;
  readonly value: string;
  readonly effective: boolean;
}

/** What is left of a node that was removed. */
export interface NodeTombstonesTable {
  readonly id: Generated<bigint>;
  readonly node_id: string;
  readonly node_type: NodeType;
  readonly removed_at: Timestamp;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  readonly last_epoch: number;
  readonly last_state: JsonColumn<unknown>;
}

/** Where health replicas can be reached. */
export interface HealthReplicasTable {
  readonly instance: string;
  readonly agent_endpoint: string;
  readonly internal_address: string;
  readonly query_endpoint: string;
  readonly advertised_at: Timestamp;
}

/** What is observed of a node. Written by health replicas, but for `marked`, which admin writes. */
export interface NodeSessionsTable {
  readonly node_id: string;
  readonly node_type: NodeType;
  readonly epoch: Generated<number>;
  readonly replica_id: string | null;
  readonly boot_id: string | null;
  readonly machine_fingerprint: string | null;
  readonly address: string | null;
  readonly opened_at: Date | null;
  readonly connection: ConnectionState;
  readonly connection_since: Timestamp;
  readonly connection_reason: string;
  readonly connection_message: string;
  readonly connection_actor: string;
  readonly health: HealthState;
  readonly health_since: Timestamp;
  readonly health_reason: string;
  readonly health_message: string;
  readonly health_actor: string;
  readonly marked: Generated<boolean>;
  readonly status: Computed<HealthState | ConnectionState>;
}

/** The log: one row for each change, in commit order. */
export interface EventsTable {
  readonly revision: bigint;
  readonly id: Generated<string>;
  readonly at: Timestamp;
  readonly type: EventType;
  readonly subject: string;
  readonly actor: string;
  readonly reason: string;
  readonly message: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** Bearer tokens of people and programs, stored as hashes. */
export interface AccessTokensTable {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly hash: Buffer;
  readonly created_at: Timestamp;
  readonly revoked_at: Date | null;
}

/** Who is alive, and who leads: counters that their holders raise. */
export interface LeasesTable {
  readonly name: string;
  readonly instance: string;
  readonly service: string;
  readonly address: string;
  readonly counter: Generated<number>;
  readonly taken_at: Timestamp;
  readonly renewed_at: Timestamp;
}

/** Nonces of challenges that were answered, so that none is answered twice. */
export interface UsedChallengesTable {
  readonly nonce: Buffer;
  readonly used_at: Timestamp;
}

/** The first answer to each request that named itself. */
export interface RequestIdsTable {
  readonly caller: string;
  readonly method: string;
  readonly request_id: string;
  readonly answer: Buffer | null;
  readonly created_at: Timestamp;
}

/** One row: how far the log has been relayed outward. */
export interface EventRelayTable {
  readonly singleton: Generated<boolean>;
  readonly revision: Generated<bigint>;
  readonly generation: Generated<number>;
  readonly saved_at: Timestamp;
}

/** The last run of each kind of upkeep. */
export interface UpkeepRunsTable {
  readonly name: string;
  readonly instance: string;
  readonly started_at: Timestamp;
  readonly ended_at: Date | null;
  readonly outcome: string;
  readonly row_count: Generated<bigint>;
  readonly message: Generated<string>;
  readonly runs: Generated<bigint>;
}

/** Every table of the record. */
export interface Database {
  readonly cluster: ClusterTable;
  readonly nodes: NodesTable;
  readonly node_identities: NodeIdentitiesTable;
  readonly node_labels: NodeLabelsTable;
  readonly node_tombstones: NodeTombstonesTable;
  readonly health_replicas: HealthReplicasTable;
  readonly node_sessions: NodeSessionsTable;
  readonly events: EventsTable;
  readonly access_tokens: AccessTokensTable;
  readonly leases: LeasesTable;
  readonly used_challenges: UsedChallengesTable;
  readonly request_ids: RequestIdsTable;
  readonly event_relay: EventRelayTable;
  readonly upkeep_runs: UpkeepRunsTable;
}
