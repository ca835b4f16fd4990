/**
 * Every table of Rollcall. Other tables in the schema belong to other programs: Rollcall neither copies nor touches
 * them.
 */
export const STORE_TABLES: readonly string[] = [
  "access_tokens",
  "audit_cut",
  "audit_head",
  "audit_log",
  "bans",
  "brakes",
  "cluster",
  "configured_health_policy",
  "declared_objects",
  "drains",
  "event_relay",
  "events",
  "execution_observations",
  "execution_specs",
  "executions",
  "health_policies",
  "health_replicas",
  "job_versions",
  "jobs",
  "join_token_uses",
  "join_tokens",
  "leases",
  "node_allocations",
  "node_identities",
  "node_labels",
  "node_sessions",
  "node_tombstones",
  "nodes",
  "process_reports",
  "request_ids",
  "sign_in_codes",
  "upkeep_runs",
  "used_challenges",
  "webhook_backlog",
  "webhooks",
];

/** Tables that record the applied migrations. A restore writes them itself. */
export const MIGRATION_TABLES: readonly string[] = ["kysely_migration", "kysely_migration_lock"];

/** Every sequence of Rollcall. */
export const STORE_SEQUENCES: readonly string[] = [
  "access_tokens_number_seq",
  "bans_id_seq",
  "events_revision",
  "join_token_uses_id_seq",
  "join_tokens_number_seq",
  "losses",
  "node_tombstones_id_seq",
  "work_generations",
];

/** Every function of Rollcall. */
export const STORE_FUNCTIONS: readonly string[] = [
  "append_audit",
  "append_events",
  "append_log",
  "audit_hash",
  "scheduling_of",
];
