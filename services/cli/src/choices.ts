// The words that options accept, and a note that help prints. They are in a separate file, so that help and completion
// load nothing else.

/** What the amounts of `status` and `node summary` mean, for their help. */
export const AMOUNTS_NOTE =
  "Total is the hardware of approved nodes, and available is that of the nodes that can take work. Allocated " +
  "resources are reserved for executions; free resources are offered to executions, but not allocated. Used is the " +
  "usage that nodes measure, including that of programs other than executions.";
/** --output. */
export const OUTPUT_WORDS = ["table", "wide", "name", "json", "yaml", "csv"] as const;
/** --filter-approval. */
export const APPROVAL_WORDS = ["approved", "pending", "rejected"] as const;
/** --filter-status: health for compute nodes, connection for all. */
export const STATUS_WORDS = ["healthy", "unhealthy", "unknown", "connected", "disconnected"] as const;
/** --filter-type. */
export const TYPE_WORDS = ["compute", "control-plane"] as const;
/** --filter-connection. */
export const CONNECTION_WORDS = ["connected", "disconnected"] as const;
/** --filter-scheduling. */
export const SCHEDULING_WORDS = ["eligible", "ineligible", "draining", "drained", "unconfirmed"] as const;
/** --for of `node wait`. */
export const NODE_WAIT_WORDS = [
  "approved",
  "pending",
  "rejected",
  "connected",
  "disconnected",
  "healthy",
  "unhealthy",
  "unknown",
  "eligible",
  "ineligible",
  "draining",
  "drained",
  "deleted",
] as const;
/** --order-by. */
export const ORDER_WORDS = [
  "id",
  "type",
  "approval",
  "status",
  "scheduling",
  "cores",
  "memory",
  "disk",
  "gpus",
  "created",
] as const;
/** --show, in the order of the printed columns. */
export const COLUMN_GROUPS = [
  "scheduling",
  "labels",
  "capacity",
  "work",
  "seen",
  "connection",
  "version",
  "hardware",
  "features",
  "reasons",
] as const;
/** The groups that `node list` prints without --show. */
export const DEFAULT_GROUPS = [
  "scheduling",
  "labels",
  "capacity",
  "seen",
  "connection",
] as const satisfies readonly (typeof COLUMN_GROUPS)[number][];
/** The groups that `node list` prints without --show in a wide table. */
export const WIDE_GROUPS = [
  ...DEFAULT_GROUPS,
  "work",
  "version",
  "reasons",
] as const satisfies readonly (typeof COLUMN_GROUPS)[number][];
/** --states of `job list`. */
export const JOB_STATE_WORDS = ["active", "stopped", "completed", "failed"] as const;
/** --states of `job delete`. */
export const ENDED_STATE_WORDS = [
  "stopped",
  "completed",
  "failed",
] as const satisfies readonly (typeof JOB_STATE_WORDS)[number][];
/** --types of `job list`. */
export const JOB_TYPE_WORDS = ["batch", "service", "ops", "daemon"] as const;
/** --states of `job executions`. */
export const EXECUTION_STATE_WORDS = [
  "pending",
  "starting",
  "running",
  "ready",
  "lost",
  "orphaned",
  "completed",
  "failed",
  "stopped",
  "killed-oom",
  "replaced",
] as const;
/** --kinds of `export`. */
export const DECLARED_KIND_WORDS = ["policies", "labels", "webhooks", "jobs"] as const;
/** --role. */
export const ROLE_WORDS = ["viewer", "operator", "submitter", "admin"] as const;
/** `completion`. */
export const SHELL_WORDS = ["bash", "zsh", "fish"] as const;
/** --type of `events`: the types that docs/events.md describes. */
export const EVENT_TYPE_WORDS = [
  "node.registered",
  "node.approved",
  "node.rejected",
  "node.deleted",
  "node.deregistered",
  "node.banned",
  "node.unbanned",
  "node.key.rotation.required",
  "node.key.offered",
  "node.key.rotated",
  "node.identity.duplicated",
  "node.identity.cleared",
  "node.info.changed",
  "node.labels.changed",
  "node.connection.changed",
  "node.session.moved",
  "node.health.changed",
  "node.reactions.allowed",
  "node.scheduling.changed",
  "node.drain.started",
  "node.drain.cancelled",
  "node.flapping.started",
  "node.flapping.ended",
  "node.hardware.degraded",
  "node.hardware.restored",
  "node.hardware.accepted",
  "node.conditions.changed",
  "node.rebooted",
  "node.reboot.cleared",
  "join.token.created",
  "join.token.revoked",
  "access.token.created",
  "access.token.revoked",
  "policy.health.set",
  "policy.health.deleted",
  "brake.changed",
  "webhook.set",
  "webhook.deleted",
  "webhook.paused",
  "webhook.behind",
  "webhook.replayed",
  "job.submitted",
  "job.changed",
  "job.deleted",
  "job.executions.placed",
  "job.execution.ordered",
  "job.execution.ended",
  "job.execution.lost",
  "job.execution.found",
  "job.execution.replaced",
  "job.execution.restored",
  "job.executions.orphaned",
  "job.execution.adopted",
] as const;
