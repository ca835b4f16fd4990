import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type JobSpec, JobSpecSchema, JobType } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Store } from "@rollcall/store";

/** Fields of a job. */
export type JobInit = Exclude<MessageInitShape<typeof JobSpecSchema>, JobSpec>;

/** A service of some executions with a quarter of a core each, which may wait for nodes. */
export function serviceOf(name: string, count: number, rest: JobInit = {}): JobSpec {
  return create(JobSpecSchema, {
    ...{ name, count, type: JobType.SERVICE },
    resources: { millicores: 250 },
    task: { case: "process", value: { command: ["sleep", "infinity"] } },
    queueTimeout: durationFromMs(3_600_000),
    ...rest,
  });
}

/** The types of jobs by the words of job files. */
export const TYPE_OF = {
  batch: JobType.BATCH,
  service: JobType.SERVICE,
  ops: JobType.OPS,
  daemon: JobType.DAEMON,
} as const;

/** Lose a node and allow the reaction to that, as health does once the brake lets it go. */
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

/** Tell that something about a node has changed. */
export async function tellOf(store: Store, nodeId: string): Promise<void> {
  await store.change(async () => {
    const event = { subject: nodeId, actor: "replica:r", message: "", before: null, after: null };
    return { result: null, events: [{ ...event, type: "node.health.changed", reason: "HEARTBEAT_RECEIVED" }] };
  });
}
