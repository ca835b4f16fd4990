import { openSessions, type Store, writeTransitions } from "@rollcall/store";
import { addNode, type TestNodeOptions, testFingerprint } from "./test-nodes.ts";

/** The properties of a node that matter to a test of work. */
export interface TestWorkNodeOptions extends TestNodeOptions {
  readonly millicores?: number;
  readonly workMemoryBytes?: number;
  readonly workDiskBytes?: number;
  readonly executors?: readonly string[];
  /** UUIDs. */
  readonly gpuUuids?: readonly string[];
  /** Facts that the node's agent cannot determine, as fields of NodeInfo. */
  readonly unknownFacts?: readonly string[];
  readonly health?: "HEALTHY" | "UNHEALTHY";
  readonly replicaId?: string;
}

const GIB = 2 ** 30;

/** Add a node that takes work to the store. Default: approved, connected and healthy. */
export async function addWorkNode(store: Store, id: string, options: TestWorkNodeOptions = {}): Promise<void> {
  const { health = "HEALTHY", replicaId = "r" } = options;
  await addNode(store, id, options);
  await saveWorkInfo(store, id, options);
  await connectNode(store, id, replicaId);
  await evaluateNode(store, id, health, replicaId);
}

/** Save the machine information that a node that takes work reports. */
export async function saveWorkInfo(store: Store, id: string, options: TestWorkNodeOptions = {}): Promise<void> {
  const { executors = ["process"], gpuUuids = [], unknownFacts = [] } = options;
  const { millicores = 4_000, workMemoryBytes = 8 * GIB, workDiskBytes = 100 * GIB } = options;
  const info = {
    hostname: id,
    agentVersion: "0.1.0",
    os: { family: "linux", architecture: "x64" },
    gpus: gpuUuids.map((uuid, index) => ({ index, uuid, name: "H100" })),
    unknownFacts: unknownFacts.map((fact) => ({ fact, reason: "its probe fails" })),
    work: {
      executors,
      ...{ millicores, memoryBytes: String(workMemoryBytes), diskBytes: String(workDiskBytes) },
      ...{ portMin: 20_000, portMax: 20_999, limits: ["cpu", "memory"] },
    },
  };
  await store.db
    .updateTable("nodes")
    .set({ info: JSON.stringify(info) })
    .where("id", "=", id)
    .execute();
}

/** Open the next session of a node. Returns its epoch. */
export async function connectNode(store: Store, nodeId: string, replicaId = "r"): Promise<number> {
  const machine = { instanceId: "", bootId: "b", machineFingerprint: "f", address: "a:1", replicaId };
  const { result } = await store.change((tx) =>
    openSessions(tx, [{ nodeId, ...machine, keyFingerprint: testFingerprint(nodeId) }]),
  );
  const [session] = result;
  if (session?.outcome !== "OPENED") throw new Error(`no session of ${nodeId} was opened`);
  return session.epoch;
}

/** Save a node's health as if the replica that holds it had declared it. */
export async function evaluateNode(
  store: Store,
  nodeId: string,
  state: "HEALTHY" | "UNHEALTHY" | "UNKNOWN",
  replicaId = "r",
): Promise<void> {
  const { epoch } = await store.db
    .selectFrom("node_sessions")
    .select("epoch")
    .where("node_id", "=", nodeId)
    .executeTakeFirstOrThrow();
  const reason = state === "HEALTHY" ? "HEARTBEAT_RECEIVED" : "HEARTBEATS_MISSED";
  const health = { state, reason, message: "", actor: `replica:${replicaId}` };
  await writeTransitions(store, replicaId, [{ nodeId, epoch, health }]);
}
