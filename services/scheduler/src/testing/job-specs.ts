import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type JobSpec, JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Store } from "@rollcall/store";

/** Fields of a job. */
export type JobInit = Exclude<MessageInitShape<typeof JobSpecSchema>, JobSpec>;

/**
 * A service whose executions need a quarter of a core each and can wait for nodes. The count is omitted if `rest` makes
 * the job run once on every node.
 */
export function serviceOf(name: string, count: number, rest: JobInit = {}): JobSpec {
  const isPerNode = rest.type === JobType.DAEMON || rest.type === JobType.OPS;
  return create(JobSpecSchema, {
    ...{ name, type: JobType.SERVICE, ...(isPerNode ? {} : { count }) },
    resources: { millicores: 250 },
    task: { case: "process", value: { command: ["sleep", "infinity"] } },
    queueTimeout: durationFromMs(3_600_000),
    ...rest,
  });
}

/** The job types by their names in job files. */
export const TYPE_OF = {
  batch: JobType.BATCH,
  service: JobType.SERVICE,
  ops: JobType.OPS,
  daemon: JobType.DAEMON,
} as const;

/** Lose a node and allow the reaction, as the health service does once the brake releases it. */
export async function allowReaction(store: Store, nodeId: string): Promise<void> {
  await store.change(async (tx) => {
    await tx
      .updateTable("node_sessions")
      .set({ health: "UNHEALTHY", connection: "DISCONNECTED", reaction: "ALLOWED" })
      .where("node_id", "=", nodeId)
      .execute();
    const event = { subject: nodeId, actor: "replica:r", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.reactions.allowed", reason: "NO_STORM" }] };
  });
}

/** Append an event that something about a node has changed. */
export async function tellOf(store: Store, nodeId: string): Promise<void> {
  await store.change(async () => {
    const event = { subject: nodeId, actor: "replica:r", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.health.changed", reason: "HEARTBEAT_RECEIVED" }] };
  });
}
