import { afterAll, afterEach, beforeAll, expect } from "@jest/globals";
import type { PolicyOverride } from "@rollcall/domain";
import type { Store } from "@rollcall/store";
import { createTestDatabase, eventually, FakeAgents, type TestDatabase } from "@rollcall/testkit";
import { setPolicy } from "./policies.ts";
import { eventsOf, recordOf, register } from "./record.ts";
import { type TestReplica, TestReplicas } from "./test-replica.ts";

/** A store with one replica, for a test file about node conditions. */
class ConditionsRig {
  readonly agents = new FakeAgents();
  readonly replicas = new TestReplicas();
  #database: TestDatabase | null = null;
  #replica: TestReplica | null = null;

  get store(): Store {
    return this.database.store;
  }

  get database(): TestDatabase {
    if (this.#database === null) throw new Error("call useConditionsRig() first");
    return this.#database;
  }

  get replica(): TestReplica {
    if (this.#replica === null) throw new Error("call useConditionsRig() first");
    return this.#replica;
  }

  async start(): Promise<void> {
    this.#database = await createTestDatabase();
    this.#replica = await this.replicas.start({ store: this.#database.store });
  }

  /** Start another replica. */
  async another(): Promise<TestReplica> {
    return this.replicas.start({ store: await this.database.openStore() });
  }

  async close(): Promise<void> {
    await this.replicas.close();
    await this.database.drop();
  }
}

export const rig = new ConditionsRig();

/** Start the rig before the tests of a file and close it after them. */
export function useConditionsRig(): void {
  beforeAll(() => rig.start());
  afterEach(() => rig.agents.close());
  afterAll(() => rig.close());
}

/** Register a node, optionally with its own policy. */
export async function newAgent(nodeId: string, override?: PolicyOverride) {
  const agent = rig.agents.create(nodeId);
  await register(rig.store, [agent]);
  if (override !== undefined) {
    await setPolicy(rig.store, { kind: "node", nodeId, override });
    await rig.replica.caughtUp();
  }
  return agent;
}

export type Agent = Awaited<ReturnType<typeof newAgent>>;

/** Join and send a heartbeat that takes effect. */
export async function join(agent: Agent, at = rig.replica, hello = {}) {
  const stream = await agent.join(at.address, hello);
  await stream.beatAcknowledged();
  return stream;
}

/** Change the detected health once, by a heartbeat or by silence. */
export async function change(agent: Agent, to: "HEALTHY" | "UNHEALTHY", at = rig.replica) {
  const stream = to === "HEALTHY" ? await join(agent, at) : null;
  if (stream === null) await at.pass(3_200);
  await eventually(async () => {
    const { detectedHealth } = await recordOf(rig.store, agent.nodeId);
    expect(detectedHealth.state).toBe(to);
  });
  return stream;
}

/** Cause three outages. The last one does not end. */
export async function flap(agent: Agent, at = rig.replica) {
  for (let outage = 0; outage < 3; outage++) {
    await change(agent, "HEALTHY", at);
    await change(agent, "UNHEALTHY", at);
  }
}

/** Move a node's stored outages into the past. */
export async function age(nodeId: string, ms: number): Promise<void> {
  const { db } = rig.store;
  const { history } = await recordOf(rig.store, nodeId);
  const outages = history.outages.map(({ startedAtMs, endedAtMs }) => ({
    startedAtMs: startedAtMs - ms,
    endedAtMs: endedAtMs === null ? null : endedAtMs - ms,
  }));
  const columns = { outages: JSON.stringify(outages) };
  await db.updateTable("node_sessions").set(columns).where("node_id", "=", nodeId).execute();
}

/** Update the node's conditions. */
export async function keep(nodeId: string, at = rig.replica): Promise<void> {
  const node = at.app.replica.nodes.find(nodeId);
  if (node === undefined) throw new Error(`${nodeId} is not held`);
  at.app.keepConditions(node);
}

/** Return the kinds of the holds on a node. */
export const holdsOf = async (nodeId: string) => (await recordOf(rig.store, nodeId)).holds.map(({ kind }) => kind);

/** Events of a node in the log, each as its type and reason. */
export const told = async (nodeId: string, types: Parameters<typeof eventsOf>[2]) =>
  (await eventsOf(rig.store, nodeId, types)).map(({ type, reason }) => `${type.replace("node.", "")} ${reason}`);

/** Two GPUs, as in a hardware report. */
export const GPUS = [0, 1].map((index) => ({
  index,
  uuid: `GPU-${index}`,
  pciAddress: `0000:0${index}:00.0`,
}));
const GIB = 2n ** 30n;

/** Create a report about the hardware. */
export const info = (cores: number, memoryGib: number, gpus = GPUS) => ({
  cpu: { threads: cores },
  memoryBytes: BigInt(memoryGib) * GIB,
  gpus,
});

export type Stream = Awaited<ReturnType<typeof join>>;

/** Send a report, and wait until it is stored. */
export async function report(nodeId: string, stream: Stream, value: ReturnType<typeof info>) {
  const { infoDigest } = await recordOf(rig.store, nodeId);
  stream.send({ case: "nodeInfo", value });
  await eventually(async () => {
    expect((await recordOf(rig.store, nodeId)).infoDigest).not.toBe(infoDigest);
  });
}
