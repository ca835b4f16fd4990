import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  type ApproveNodeRequest,
  ApproveNodeRequestSchema,
  type NodeOutcome,
  NodeOutcomeSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { HealthState, MembershipState, NodeSchema, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { requestDigest } from "@rollcall/rpc";
import { getNode, lockNode, type Store } from "@rollcall/store";
import { createGate, createTestDatabase, refusalOf, saveLabels, until } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
beforeEach(() => rig.store.db.deleteFrom("nodes").execute());
afterAll(() => rig.close());

/** Format the outcomes, one per line. */
function words(outcomes: readonly NodeOutcome[]): string[] {
  return outcomes.map(({ nodeId, result }) => {
    if (result.case === "refusal") return `${nodeId} ${ErrorReasonSchema.value[result.value.reason]?.localName}`;
    return `${nodeId} ok`;
  });
}

async function add(...ids: readonly string[]): Promise<void> {
  for (const id of ids) await addNode(rig.store, id);
}

async function auditOf(store: Store, target: string): Promise<readonly string[]> {
  const rows = await store.db
    .selectFrom("audit_log")
    .select(["outcome"])
    .where("target", "=", target)
    .orderBy("sequence")
    .execute();
  return rows.map(({ outcome }) => outcome);
}

/** Whether a transaction of this database waits for another's lock. */
async function isWaitingForLock({ db, address: { url } }: Store): Promise<boolean> {
  const locks = await db
    .withTables<{
      pg_locks: { readonly pid: number; readonly granted: boolean };
      pg_stat_activity: { readonly pid: number; readonly datname: string };
    }>()
    .selectFrom("pg_locks as l")
    .innerJoin("pg_stat_activity as a", "a.pid", "l.pid")
    .select("l.pid")
    .where("l.granted", "=", false)
    .where("a.datname", "=", new URL(url).pathname.slice(1))
    .execute();
  return locks.length > 0;
}

describe("operate()", () => {
  it("should apply to each named node, and report each outcome", async () => {
    await add("gpu-1", "gpu-2", "web-1");
    await addNode(rig.store, "web-2", "APPROVED");
    const { node, outcomes, nextPageToken } = await rig.admin.approveNode({
      selector: { nodes: ["web-2", "gpu-1", "web-1", "gpu-1", "nobody", "gpu"] },
    });
    expect(words(outcomes)).toEqual([
      "nobody NODE_NOT_FOUND",
      "gpu NODE_NOT_FOUND",
      "gpu-1 ok",
      "web-1 ok",
      "web-2 NODE_ALREADY_APPROVED",
    ]);
    expect([node, nextPageToken]).toEqual([undefined, ""]);
    const [, , done, , refused] = outcomes;
    expect(done?.result).toMatchObject({
      value: { id: "gpu-1", membership: { state: MembershipState.APPROVED } },
    });
    expect(refused?.result).toMatchObject({
      value: { message: "node web-2 is already approved", metadata: { node: "web-2" } },
    });
    expect(await eventsOf(rig.store, "gpu-1")).toHaveLength(1);
    expect(await eventsOf(rig.store, "web-2")).toEqual([]);
    expect(await auditOf(rig.store, "gpu-1")).toEqual(["OK"]);
    expect(await auditOf(rig.store, "web-2")).toEqual(["NODE_ALREADY_APPROVED"]);
  });

  it("should choose by labels, membership, type and health, all of which must match", async () => {
    await add("a-1", "a-2", "b-1");
    await addNode(rig.store, "a-3", "APPROVED");
    await addOrchestrator(rig.store, "a-4");
    for (const node of ["a-1", "a-2", "a-3", "a-4"]) {
      await rig.admin.setNodeLabels({ node, set: { zone: "a" } });
    }
    const { outcomes } = await rig.admin.cordonNode({
      selector: {
        labelSelector: "zone=a",
        memberships: [MembershipState.PENDING],
        types: [NodeType.COMPUTE],
        healths: [HealthState.UNKNOWN],
      },
    });
    expect(words(outcomes)).toEqual(["a-1 ok", "a-2 ok"]);
    const named = await rig.admin.cordonNode({
      selector: { nodes: ["a-1", "b-1", "a-3"], labelSelector: "zone=a" },
    });
    expect(words(named.outcomes)).toEqual(["a-1 NODE_ALREADY_CORDONED", "a-3 ok"]);
    const none = await rig.admin.cordonNode({ selector: { labelSelector: "zone=nowhere" } });
    expect(none.outcomes).toEqual([]);
  });

  it("should never mean every node by accident", async () => {
    await add("n-1", "n-2");
    expect(await refusalOf(rig.admin.deleteNode({ selector: {} }))).toMatchObject({
      code: Code.InvalidArgument,
      reason: "INVALID_REQUEST",
    });
    expect(await refusalOf(rig.admin.deleteNode({}))).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await refusalOf(rig.admin.deleteNode({ node: "n-1", selector: { all: true } }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
    expect(await refusalOf(rig.admin.deleteNode({ selector: { labelSelector: "zone==", nodes: [""] } }))).toMatchObject(
      { reason: "INVALID_REQUEST" },
    );
    expect(await refusalOf(rig.admin.deleteNode({ selector: { labelSelector: "a in" } }))).toMatchObject({
      reason: "INVALID_SELECTOR",
    });
    const paged = await refusalOf(rig.admin.deleteNode({ node: "n-1", pageToken: "x" }));
    expect(paged).toMatchObject({ reason: "INVALID_REQUEST", violations: [{ field: "page_token" }] });
    const etag = await refusalOf(rig.admin.deleteNode({ selector: { all: true }, etag: "x" }));
    expect(etag.violations).toMatchObject([{ field: "etag" }]);
    const { outcomes } = await rig.admin.deleteNode({ selector: { all: true } });
    expect(words(outcomes)).toEqual(["n-1 ok", "n-2 ok"]);
    expect(await getNode(rig.store.db, "n-1")).toBeNull();
  });

  it("should report what it would do, and change nothing, in a dry run", async () => {
    // Use new nodes, because refusals about other nodes may be written in the meantime.
    await add("dry-1");
    await addNode(rig.store, "dry-2", "APPROVED");
    const selector = { nodes: ["dry-1", "dry-2"] };
    const request = { selector, requestId: "dry-run" };
    const traces = async () => [await eventsOf(rig.store, "dry-1"), await auditOf(rig.store, "dry-1")];
    const before = await traces();
    const { outcomes } = await rig.admin.approveNode({ ...request, validateOnly: true });
    expect(words(outcomes)).toEqual(["dry-1 ok", "dry-2 NODE_ALREADY_APPROVED"]);
    expect((await getNode(rig.store.db, "dry-1"))?.membership.state).toBe("PENDING");
    expect(await traces()).toEqual(before);
    expect(words((await rig.admin.approveNode(request)).outcomes)).toEqual(words(outcomes));
  });

  it("should handle more nodes than fit in one call", async () => {
    const ids = Array.from({ length: 640 }, (_, index) => `m-${String(index).padStart(3, "0")}`);
    await rig.store.db
      .insertInto("nodes")
      .values(
        ids.map((id) => ({
          ...{ id, type: "COMPUTE" as const, membership: "PENDING" as const },
          ...{ membership_reason: "X", membership_message: "", membership_actor: "system" },
        })),
      )
      .execute();
    await rig.store.db
      .insertInto("node_sessions")
      .values(
        ids.map((id) => ({
          ...{ node_id: id, node_type: "COMPUTE" as const, connection: "DISCONNECTED" as const },
          ...{ connection_reason: "X", connection_message: "", connection_actor: "system" },
          ...{ health: "UNKNOWN" as const, health_reason: "X", health_message: "" },
          health_actor: "system",
        })),
      )
      .execute();
    const selector = { memberships: [MembershipState.PENDING] };
    const first = await rig.admin.approveNode({ selector, requestId: "many" });
    expect(first.outcomes).toHaveLength(500);
    const pageToken = first.nextPageToken;
    const second = await rig.admin.approveNode({ selector, pageToken, requestId: "many" });
    expect(second.nextPageToken).toBe("");
    expect(words([...first.outcomes, ...second.outcomes])).toEqual(ids.map((id) => `${id} ok`));
    // Repeating the request returns the same response.
    expect(await rig.admin.approveNode({ selector, requestId: "many" })).toEqual(first);
    const other = { selector: { all: true }, pageToken };
    expect(await refusalOf(rig.admin.approveNode(other))).toMatchObject({
      reason: "INVALID_PAGE_TOKEN",
    });
  });

  it("should have one effect for concurrent copies of a request, whatever its names mean later", async () => {
    await add("p-1");
    const request = { selector: { nodes: ["p-1"] }, requestId: "r-1" };
    const answers = await Promise.all([1, 2, 3].map(() => rig.admin.deleteNode(request)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    await add("p-1", "p-12");
    expect(words((await rig.admin.deleteNode(request)).outcomes)).toEqual(["p-1 ok"]);
    expect(await getNode(rig.store.db, "p-1")).not.toBeNull();
    expect(await getNode(rig.store.db, "p-12")).not.toBeNull();
  });

  it("should skip nodes that no longer match once their lock is held", async () => {
    await add("l-1", "l-2");
    for (const node of ["l-1", "l-2"]) await rig.admin.setNodeLabels({ node, set: { zone: "l" } });
    const [locked, released] = [createGate(), createGate()];
    const relabelling = rig.store.transaction(async (tx) => {
      await lockNode(tx, "l-1");
      locked.open();
      await released.passed;
      await saveLabels(tx, "l-1", "operator", []);
    });
    await locked.passed;
    const cordoning = rig.admin.cordonNode({ selector: { labelSelector: "zone=l" } });
    await until("the call to wait for the lock", () => isWaitingForLock(rig.store));
    released.open();
    await relabelling;
    expect(words((await cordoning).outcomes)).toEqual(["l-2 ok"]);
    expect((await getNode(rig.store.db, "l-1"))?.holds).toEqual([]);
  });

  it("should repeat a response that the previous version stored", async () => {
    const node = create(NodeSchema, { id: "gone", etag: "as-it-was" });
    const outcome = create(NodeOutcomeSchema, { nodeId: "gone", result: { case: "node", value: node } });
    const part = {
      outcomes: [Buffer.from(toBinary(NodeOutcomeSchema, outcome)).toString("base64")],
      ids: ["gone"],
      next: null,
    };
    const method = "/rollcall.admin.v1.AdminService/ApproveNode";
    const one = create(ApproveNodeRequestSchema, { node: "gone", requestId: "one-before" });
    const many = create(ApproveNodeRequestSchema, { selector: { nodes: ["gone"] }, requestId: "many-before" });
    const remembered = (request: ApproveNodeRequest) => {
      const digest = Buffer.from(requestDigest(ApproveNodeRequestSchema, request));
      return { caller: rig.operator.actor, request_id: request.requestId, digest };
    };
    await rig.store.db
      .insertInto("request_ids")
      .values([
        { ...remembered(one), method, answer: Buffer.from(toBinary(NodeSchema, node)) },
        { ...remembered(many), method: `${method}#`, answer: Buffer.from(JSON.stringify(part)) },
      ])
      .execute();
    expect(await rig.admin.approveNode(one)).toMatchObject({ node, outcomes: [] });
    expect(await rig.admin.approveNode(many)).toMatchObject({ outcomes: [outcome] });
  });

  it("should require an operator's token", async () => {
    const viewer = rig.client((await createToken(rig.store, "viewer")).text);
    const call = viewer.approveNode({ selector: { all: true } });
    expect(await refusalOf(call)).toMatchObject({ reason: "ROLE_TOO_LOW" });
  });

  it("should ban and unban many", async () => {
    await add("q-1", "q-2");
    const selector = { nodes: ["q-1", "q-2", "q-3"] };
    const banned = await rig.admin.banNode({ selector });
    expect(words(banned.outcomes)).toEqual(["q-3 NODE_NOT_FOUND", "q-1 ok", "q-2 ok"]);
    const approved = await rig.admin.approveNode({ selector: { all: true } });
    expect(words(approved.outcomes)).toEqual(["q-1 NODE_BANNED", "q-2 NODE_BANNED"]);
    const lifted = await rig.admin.unbanNode({ selector: { all: true } });
    expect(words(lifted.outcomes)).toEqual(["q-1 ok", "q-2 ok"]);
    expect((await rig.admin.listBans({})).bans).toEqual([]);
  });
});
