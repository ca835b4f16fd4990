import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { generateKeyPair } from "@rollcall/identity";
import { createTestDatabase, type TestDatabase } from "@rollcall/testkit";
import { nodeInfoToRecord } from "@rollcall/wire";
import type { HeldNode } from "../replica/held-node.ts";
import { bareReplica } from "../testing/bare-replica.ts";
import { heldNode } from "../testing/held-node.ts";
import { eventsOf, recordOf, register } from "../testing/record.ts";
import { InfoWriter } from "./info-writer.ts";

let database: TestDatabase;
let nodes = 0;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

type Report = MessageInitShape<typeof NodeInfoSchema>;

const digestOf = (report: Report) => nodeInfoToRecord(create(NodeInfoSchema, report)).digest;

/** A writer of the replica "me", whose changes can be preceded by something else. */
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
  const submit = (node: HeldNode, report: Report) => writer.submit(node, create(NodeInfoSchema, report));
  return { writer, submit, queued: () => queued };
}

/** A node that a replica holds under an epoch, as this one believes to do under epoch 3. */
async function held({ replicaId = "me", epoch = 3, state = "APPROVED" as "APPROVED" | "REJECTED" } = {}) {
  nodes += 1;
  const id = `said${nodes}`;
  const { publicKey } = generateKeyPair();
  await register(database.store, [{ nodeId: id, publicKey }], state);
  const { db } = database.store;
  await db.updateTable("node_sessions").set({ replica_id: replicaId, epoch }).where("node_id", "=", id).execute();
  return heldNode(id, { epoch: 3 });
}

describe("InfoWriter", () => {
  it("should write a report with its event, and know then that the record has it", async () => {
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
  ] as const)("should not write what came from %s, nor take it for written", async (_, facts) => {
    const { writer, submit } = setUp();
    const node = await held(facts);
    submit(node, { hostname: "h1" });
    await writer.flush();
    expect(node.infoDigest).toBeNull();
    expect((await recordOf(database.store, node.id)).info).toBeNull();
    expect(await eventsOf(database.store, node.id, ["node.info.changed"])).toEqual([]);
  });

  it("should drop a report that waits when the node says again what the record has", async () => {
    const { writer, submit } = setUp();
    const node = await held();
    submit(node, { hostname: "h1" });
    await writer.flush();
    submit(node, { hostname: "h2" });
    submit(node, { hostname: "h1" });
    expect(writer.queued).toBe(0);
  });

  it("should write the newest report also when it comes while an older one is written", async () => {
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

  it("should let 2,000 nodes wait, whose reports may still change", () => {
    const { writer, submit } = setUp();
    const crowd = Array.from({ length: 2_001 }, (_, index) => ({ id: `c${index}`, infoDigest: null }) as HeldNode);
    for (const node of crowd) submit(node, { hostname: "h1" });
    expect(writer.queued).toBe(2_000);
    const [first] = crowd;
    if (first === undefined) throw new Error("no node");
    submit(first, { hostname: "h2" });
    expect(writer.queued).toBe(2_000);
  });
});
