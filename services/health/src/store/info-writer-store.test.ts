import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { generateKeyPair } from "@rollcall/identity";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { nodeInfoToRow } from "@rollcall/wire";
import type { LiveNode } from "../replica/live-node.ts";
import { bareReplica } from "../testing/bare-replica.ts";
import { liveNode } from "../testing/live-node.ts";
import { eventsOf, recordOf, register } from "../testing/record.ts";
import { InfoWriter } from "./info-writer.ts";

let database: TestDatabase;
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

type Report = MessageInitShape<typeof NodeInfoSchema>;

const digestOf = (report: Report) => nodeInfoToRow(create(NodeInfoSchema, report)).digest;

/** Create a writer for the replica "me"; `before` runs before each of its changes to the store. */
function setUp(before: () => void = () => {}) {
  const { store } = database;
  let queued = 0;
  const writer = new InfoWriter({
    store: {
      ...store,
      change: (work) => {
        before();
        return store.change(work);
      },
    },
    replica: bareReplica().replica,
    validator: { check: () => {} },
    onQueued: () => {
      queued += 1;
    },
  });
  const submit = (node: LiveNode, report: Report) => writer.submit(node, create(NodeInfoSchema, report));
  return { writer, submit, queued: () => queued };
}

/** Register a node that `replicaId` holds under `epoch`. The returned node is held by "me" under epoch 3. */
async function held({ replicaId = "me", epoch = 3, state = "APPROVED" as "APPROVED" | "REJECTED" } = {}) {
  nodes += 1;
  const id = `said${nodes}`;
  const { publicKey } = generateKeyPair();
  await register(database.store, [{ nodeId: id, publicKey }], state);
  const { db } = database.store;
  await db.updateTable("node_sessions").set({ replica_id: replicaId, epoch }).where("node_id", "=", id).execute();
  return liveNode(id, { epoch: 3 });
}

describe("InfoWriter", () => {
  it("should write a report with its event, and then know that the store has it", async () => {
    const { writer, submit, queued } = setUp();
    const node = await held();
    submit(node, { hostname: "h1" });
    await writer.flush();
    expect(node.infoDigest).toBe(digestOf({ hostname: "h1" }));
    expect((await recordOf(database.store, node.id)).infoDigest).toBe(node.infoDigest);
    expect(await eventsOf(database.store, node.id, ["node.info.changed"])).toHaveLength(1);
    submit(node, { hostname: "h1" });
    expect([queued(), writer.queued]).toEqual([1, 0]);
  });

  it.each([
    ["a stream of an older epoch", { epoch: 4 }],
    ["a node that another replica holds", { replicaId: "other" }],
    ["a rejected node", { state: "REJECTED" }],
  ] as const)("should not write a report from %s, nor consider it written", async (_, facts) => {
    const { writer, submit } = setUp();
    const node = await held(facts);
    submit(node, { hostname: "h1" });
    await writer.flush();
    expect(node.infoDigest).toBeNull();
    expect((await recordOf(database.store, node.id)).info).toBeNull();
    expect(await eventsOf(database.store, node.id, ["node.info.changed"])).toEqual([]);
  });

  it("should drop a queued report when the node reports again what the store has", async () => {
    const { writer, submit } = setUp();
    const node = await held();
    submit(node, { hostname: "h1" });
    await writer.flush();
    submit(node, { hostname: "h2" });
    submit(node, { hostname: "h1" });
    expect(writer.queued).toBe(0);
  });

  it("should keep a report that could not be written, and write it with the next flush", async () => {
    const node = await held();
    let isAway = true;
    const { writer, submit } = setUp(() => {
      if (isAway) throw new Error("the store is away");
    });
    submit(node, { hostname: "h1" });
    await expect(writer.flush()).rejects.toThrow("the store is away");
    expect([node.infoDigest, writer.queued]).toEqual([null, 1]);
    isAway = false;
    await writer.flush();
    expect((await recordOf(database.store, node.id)).infoDigest).toBe(digestOf({ hostname: "h1" }));
    expect(writer.queued).toBe(0);
  });

  it("should write the newest report, even if it arrives while an older one is written", async () => {
    const node = await held();
    let isNext = true;
    const { writer, submit } = setUp(() => {
      if (isNext) submit(node, { hostname: "h2" });
      isNext = false;
    });
    submit(node, { hostname: "h1" });
    await writer.flush();
    expect((await recordOf(database.store, node.id)).infoDigest).toBe(digestOf({ hostname: "h2" }));
    expect(writer.queued).toBe(0);
  });

  it("should queue reports of 2,000 nodes, and still replace them", () => {
    const { writer, submit } = setUp();
    const crowd = Array.from({ length: 2_001 }, (_, index) => ({ id: `c${index}`, infoDigest: null }) as LiveNode);
    for (const node of crowd) submit(node, { hostname: "h1" });
    expect(writer.queued).toBe(2_000);
    const [first] = crowd;
    if (first === undefined) throw new Error("no node");
    submit(first, { hostname: "h2" });
    expect(writer.queued).toBe(2_000);
  });
});
