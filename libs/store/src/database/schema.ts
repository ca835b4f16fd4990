import type {
  AgentSighting,
  BrakeMode,
  ConnectionState,
  EventType,
  HealthState,
  Hold,
  Json,
  LabelTier,
  MembershipState,
  NodeType,
  Outage,
  Reaction,
  SuspectedReboot,
  Trouble,
} from "@rollcall/domain";
import type { ColumnType, Generated } from "kysely";
import type { DeclaredObjectsTable } from "./tables/declared.ts";
import type { JoinTokensTable, JoinTokenUsesTable } from "./tables/join-tokens.ts";
import type { SignInCodesTable } from "./tables/sign-in-codes.ts";
import type { WebhookBacklogTable, WebhooksTable } from "./tables/webhooks.ts";
import type { WorkTables } from "./tables/work.ts";

/** A point in time, written as a Date or by Postgres itself; stored in whole milliseconds. */
export type Timestamp = ColumnType<Date, Date | undefined, Date>;
/** A JSON column: Postgres accepts text and returns parsed values. */
export type JsonColumn<T> = ColumnType<T, string, string>;
/** A column whose value Postgres computes. */
export type Computed<T> = ColumnType<T, never, never>;

/** The cluster's identity, in a single row. */
export interface ClusterTable {
  readonly singleton: Generated<boolean>;
  readonly cluster_id: Generated<string>;
  readonly secret: Buffer;
  readonly log_id: Generated<string>;
  readonly log_origin: string;
  readonly compacted_revision: Generated<bigint>;
  /** Whether a scheduler has ever led. The leading scheduler writes it. */
  readonly scheduler_led: Generated<boolean>;
  readonly created_at: Timestamp;
}

/** Nodes: decisions about them, and their reports. Written by registry and admin. */
export interface NodesTable {
  readonly id: string;
  readonly type: NodeType;
  readonly membership: MembershipState;
  readonly membership_since: Timestamp;
  readonly membership_reason: string;
  readonly membership_message: string;
  readonly membership_actor: string;
  readonly holds: ColumnType<readonly Hold[], string | undefined, string>;
  /** The scheduling state without drains. Use scheduling_of(holds) to include drains. */
  readonly scheduling: Computed<"ELIGIBLE" | "INELIGIBLE">;
  readonly eligible_since: Timestamp;
  /** When a drain or a hold for flapping was last lifted. */
  readonly disturbed_at: Date | null;
  readonly mark_since: Date | null;
  readonly mark_message: string | null;
  readonly mark_actor: string | null;
  readonly info: ColumnType<unknown, string | null | undefined, string>;
  readonly info_digest: string | null;
  readonly cores: Generated<number>;
  readonly memory_bytes: Generated<bigint>;
  readonly disk_bytes: Generated<bigint>;
  readonly gpus: Generated<number>;
  readonly join_token_id: string | null;
  readonly ephemeral: Generated<boolean>;
  readonly joined_without_token: Generated<boolean>;
  /**
   * The address that the node joined from. Null for control-plane processes, and for nodes that joined before this
   * was stored.
   */
  readonly joined_from: string | null;
  /** The hardware part of the NodeInfo at the time when the node was approved or its hardware was accepted. */
  readonly approved_hardware: ColumnType<unknown, string | null | undefined, string | null>;
  readonly missing_hardware: ColumnType<readonly Trouble[], string | undefined, string>;
  readonly version: Generated<number>;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
}

/** The key that proves a node's identity, and the key that the node has offered to use next. */
export interface NodeIdentitiesTable {
  readonly node_id: string;
  readonly public_key: Buffer;
  readonly fingerprint: string;
  readonly created_at: Timestamp;
  readonly next_public_key: Buffer | null;
  readonly next_fingerprint: string | null;
  readonly rotated_at: Date | null;
  /** When an operator requested a new key; null once the node has used the next key. */
  readonly rotation_requested_at: Date | null;
}

/** Labels of all tiers. For each key, `effective` marks the label that applies. */
export interface NodeLabelsTable {
  readonly node_id: string;
  readonly tier: LabelTier;
  readonly key: string;
  readonly value: string;
  readonly effective: boolean;
}

/** Tombstones: the data kept about a removed node. */
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

/**
 * Node ids and keys that are banned from registering. Written by admin. A ban remains when its node is removed.
 */
export interface BansTable {
  readonly id: Generated<bigint>;
  readonly node_id: string | null;
  readonly fingerprint: string | null;
  readonly reason: string;
  readonly actor: string;
  readonly at: Timestamp;
}

/** The addresses of health replicas. */
export interface HealthReplicasTable {
  readonly instance: string;
  readonly agent_endpoint: string;
  readonly internal_address: string;
  readonly query_endpoint: string;
  readonly advertised_at: Timestamp;
}

/** The observed state of each node. Written by health replicas, except `marked`, which admin writes. */
export interface NodeSessionsTable {
  readonly node_id: string;
  readonly node_type: NodeType;
  readonly epoch: Generated<number>;
  readonly replica_id: string | null;
  readonly boot_id: string | null;
  readonly machine_fingerprint: string | null;
  readonly address: string | null;
  readonly opened_at: Date | null;
  /** The most recent changes of the node's agent, oldest first. */
  readonly machines: ColumnType<readonly AgentSighting[], string | undefined, string>;
  /** Since when two agents have used the node's identity alternately; null if they do not. */
  readonly duplicated_since: Date | null;
  /** The node's recent outages, oldest first. */
  readonly outages: ColumnType<readonly Outage[], string | undefined, string>;
  readonly flapping_since: Date | null;
  readonly gpu_troubles: ColumnType<readonly Trouble[], string | undefined, string>;
  /**
   * When the machine last rebooted unexpectedly, if that was recently. `reboot_suspected` is for what may be a
   * reboot or a second agent.
   */
  readonly rebooted_at: Date | null;
  readonly reboot_suspected: ColumnType<SuspectedReboot | null, string | null | undefined, string | null>;
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
  /** Whether other services can react to the node not being HEALTHY; null while it is HEALTHY. */
  readonly reaction: Reaction | null;
  /** The number of the node's loss, in the order of all losses; null if the node does not count as lost. */
  readonly loss: bigint | null;
  /** The brake's group at the time of the loss; empty for none. */
  readonly loss_group: string | null;
  readonly lost_since: Date | null;
  readonly status: Computed<HealthState | ConnectionState>;
}

/** The health policies that operators set. Written by admin. */
export interface HealthPoliciesTable {
  readonly scope: string;
  readonly kind: "default" | "group" | "node";
  readonly node_id: string | null;
  readonly facts: JsonColumn<Json>;
  readonly version: Generated<number>;
  readonly actor: string;
  readonly message: string;
  readonly created_at: Timestamp;
  readonly updated_at: Timestamp;
}

/**
 * The configured health policy, in a single row: its values apply where no policy sets a value. Written by health.
 */
export interface ConfiguredHealthPolicyTable {
  readonly singleton: Generated<boolean>;
  readonly configured: JsonColumn<unknown>;
  readonly instance: string;
  readonly updated_at: Timestamp;
}

/** The event log: one row for each change, in commit order. */
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
  readonly displaces: string | null;
}

/** The leases of live processes and of leaders. Holders renew a lease by increasing its counter. */
export interface LeasesTable {
  readonly name: string;
  readonly instance: string;
  readonly service: string;
  readonly address: string;
  readonly counter: Generated<number>;
  readonly taken_at: Timestamp;
  readonly renewed_at: Timestamp;
  /**
   * Per brake group, the number of nodes that a health replica considers HEALTHY, and how many of these are nearly
   * UNHEALTHY.
   */
  readonly brake_sums: ColumnType<Json | null, string | null | undefined, string | null>;
  readonly sessions: number | null;
}

/** Nonces of answered challenges, so that no challenge is answered twice. */
export interface UsedChallengesTable {
  readonly nonce: Buffer;
  readonly used_at: Timestamp;
}

/** The first response to each request that has a request id. */
export interface RequestIdsTable {
  readonly caller: string;
  readonly method: string;
  readonly request_id: string;
  readonly digest: Buffer;
  readonly answer: Buffer | null;
  readonly created_at: Timestamp;
}

/** How far the event log has been relayed, in a single row. */
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

/** The reports of the control plane's processes about themselves. */
export interface ProcessReportsTable {
  readonly instance: string;
  readonly service: string;
  readonly host: string;
  readonly facts: JsonColumn<unknown>;
  readonly reported_at: Timestamp;
}

/** Every table of the store. */
export interface Database extends WorkTables {
  readonly cluster: ClusterTable;
  readonly nodes: NodesTable;
  readonly node_identities: NodeIdentitiesTable;
  readonly node_labels: NodeLabelsTable;
  readonly node_tombstones: NodeTombstonesTable;
  readonly bans: BansTable;
  readonly health_replicas: HealthReplicasTable;
  readonly health_policies: HealthPoliciesTable;
  readonly configured_health_policy: ConfiguredHealthPolicyTable;
  readonly declared_objects: DeclaredObjectsTable;
  readonly webhooks: WebhooksTable;
  readonly webhook_backlog: WebhookBacklogTable;
  readonly node_sessions: NodeSessionsTable;
  readonly events: EventsTable;
  readonly audit_log: AuditLogTable;
  readonly audit_cut: AuditCutTable;
  readonly audit_head: AuditHeadTable;
  readonly access_tokens: AccessTokensTable;
  readonly sign_in_codes: SignInCodesTable;
  readonly join_tokens: JoinTokensTable;
  readonly join_token_uses: JoinTokenUsesTable;
  readonly leases: LeasesTable;
  readonly brakes: BrakesTable;
  readonly used_challenges: UsedChallengesTable;
  readonly request_ids: RequestIdsTable;
  readonly event_relay: EventRelayTable;
  readonly upkeep_runs: UpkeepRunsTable;
  readonly process_reports: ProcessReportsTable;
}

/** The audit log: one row for each change by an authenticated caller, chained by hashes. */
export interface AuditLogTable {
  readonly sequence: bigint;
  readonly at: Timestamp;
  readonly actor: string;
  readonly method: string;
  readonly target: string;
  readonly reason: string;
  readonly outcome: string;
  readonly address: string;
  readonly request_id: string;
  readonly previous_hash: Buffer;
  readonly hash: Buffer;
}

/** The last entry that was removed from the audit log, in a single row; sequence 0 if none was removed. */
export interface AuditCutTable {
  readonly singleton: Generated<boolean>;
  readonly sequence: Generated<bigint>;
  readonly hash: Generated<Buffer>;
  readonly seal: Generated<Buffer>;
  readonly cut_at: Generated<Date>;
}

/** The last entry of the audit log and its hash, in a single row. */
export interface AuditHeadTable {
  readonly singleton: Generated<boolean>;
  readonly sequence: Generated<bigint>;
  readonly hash: Generated<Buffer>;
}

/** Bearer tokens of people and programs, stored as hashes. */
export interface AccessTokensTable {
  readonly id: string;
  readonly name: string;
  readonly role: string;
  readonly hash: Buffer;
  readonly created_at: Timestamp;
  readonly revoked_at: Date | null;
  readonly number: Computed<bigint>;
  readonly created_by: Generated<string>;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
  readonly revoked_by: string | null;
  readonly revoke_reason: string | null;
  readonly kind: Generated<"TOKEN" | "CONSOLE_SESSION">;
  readonly owner_token: string | null;
  readonly owner_issuer: string | null;
  readonly owner_subject: string | null;
  /** The claim with which the issuer reported that it had left out the groups; null if the issuer listed the groups. */
  readonly groups_left_out: string | null;
  readonly ends_at: Date | null;
  readonly idle_ms: number | null;
}

/**
 * Brakes that are not NORMAL, or recently were not. Written by the deciding health process, except for changes by
 * operators.
 */
export interface BrakesTable {
  readonly group_name: string;
  readonly mode: Generated<BrakeMode>;
  readonly mode_since: Timestamp;
  readonly size: Generated<number>;
  readonly window_loss: Generated<bigint>;
  /** The number of the last order by an operator that was carried out. */
  readonly followed: Generated<number>;
  /** Written by admin, like the columns below. */
  readonly frozen_since: Date | null;
  readonly frozen_by: string | null;
  readonly frozen_reason: string | null;
  readonly orders: Generated<number>;
  readonly ordered_loss: Generated<bigint>;
  readonly ordered_by: Generated<string>;
  readonly order_reason: Generated<string>;
}
