import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState, type Node } from "@rollcall/api/rollcall/node/v1/node_pb";
import { getNode } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, eventsOf } from "../testing/record.ts";
import { createToken, type Rig, startRig } from "../testing/rig.ts";

type Verb = (request: {
  node: string;
  reason?: string;
  etag?: string;
  requestId?: string;
}) => Promise<{ readonly node?: Node | undefined }>;

const VERBS = [
  "approveNode",
  "rejectNode",
  "deleteNode",
  "cordonNode",
  "uncordonNode",
  "markNodeUnhealthy",
  "clearNodeMark",
] as const;
const SHARED_IDS = ["gpu", "gpu-1", "gpu-2", "gpu-3", "web-1", "web-2"];

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
  for (const id of SHARED_IDS) await addNode(rig.store, id);
});
afterAll(async () => {
  // The refused calls above have not changed anything.
  for (const id of SHARED_IDS.filter((it) => it !== "gpu")) {
    expect(await eventsOf(rig.store, id)).toEqual([]);
  }
  await rig.close();
});

/** Look up the method only when it is called, because the client is created after the table of tests. */
function verb(name: (typeof VERBS)[number], client = rig.admin): Verb {
  return (request) => client[name](request);
}

describe.each(VERBS)("%s()", (name) => {
  it.each(["nobody", "none-11", "%", "' or 1=1", "a-name-beyond-the-longest-id".repeat(3)])(
    "should report that there is no node %j",
    async (node) => {
      const refusal = await refusalOf(verb(name)({ node }));
      expect(refusal).toMatchObject({
        code: Code.NotFound,
        reason: "NODE_NOT_FOUND",
        metadata: { node },
      });
      expect(refusal.message).toBe(`node ${node} not found`);
    },
  );

  it.each([
    ["web", "web-1"],
    ["gpu-11", "gpu-1"],
    ["GPU-2", "gpu-2"],
    ["wbe-2", "web-2"],
  ])("should not take %s for a node, but suggest %s", async (node, suggestion) => {
    const refusal = await refusalOf(verb(name)({ node }));
    expect(refusal).toMatchObject({ code: Code.NotFound, reason: "NODE_NOT_FOUND", metadata: { node, suggestion } });
    expect(refusal.message).toBe(`node ${node} not found; did you mean ${suggestion}?`);
  });

  it("should refuse fields that break their rules, all at once", async () => {
    const refusal = await refusalOf(
      verb(name)({
        node: "x".repeat(257),
        reason: "x".repeat(1_025),
        etag: "x".repeat(129),
        requestId: "x".repeat(129),
      }),
    );
    expect(refusal).toMatchObject({ code: Code.InvalidArgument, reason: "INVALID_REQUEST" });
    expect(refusal.violations.map(({ field }) => field)).toEqual(["node", "reason", "etag", "request_id"]);
  });

  it("should refuse texts that the store cannot keep, all at once", async () => {
    const nul = "a\0b";
    const refusal = await refusalOf(verb(name)({ node: nul, reason: nul, etag: nul, requestId: nul }));
    expect(refusal.reason).toBe("INVALID_REQUEST");
    expect(refusal.violations.map(({ field }) => field).toSorted()).toEqual(["etag", "node", "reason", "request_id"]);
  });

  it("should require an operator's token", async () => {
    const viewer = await createToken(rig.store, "viewer");
    const refusals = [undefined, "rc_0_guess", viewer.text].map(async (token) => {
      const { code, reason } = await refusalOf(verb(name, rig.client(token))({ node: "web-1" }));
      return [code, reason];
    });
    expect(await Promise.all(refusals)).toEqual([
      [Code.Unauthenticated, "TOKEN_MISSING"],
      [Code.Unauthenticated, "TOKEN_INVALID"],
      [Code.PermissionDenied, "ROLE_TOO_LOW"],
    ]);
  });

  it("should refuse an old etag", async () => {
    const refusal = await refusalOf(verb(name)({ node: "web-1", etag: "stale" }));
    expect(refusal).toMatchObject({
      code: Code.Aborted,
      reason: "ETAG_MISMATCH",
      metadata: { node: "web-1", etag: (await getNode(rig.store.db, "web-1"))?.etag },
    });
  });

  async function post(body: string | Uint8Array<ArrayBuffer>, contentType: string) {
    const method = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
    const response = await fetch(`${rig.baseUrl}/rollcall.admin.v1.AdminService/${method}`, {
      method: "POST",
      headers: { "content-type": contentType, authorization: `Bearer ${rig.operator.text}` },
      body,
    });
    return response.text();
  }

  it("should refuse garbage and messages above 1 MiB", async () => {
    const garbage = await post(new Uint8Array([0x0a, 0x7f, 0x00]), "application/proto");
    expect(garbage).toContain("MALFORMED_MESSAGE");
    expect(await post("{]", "application/json")).toContain("MALFORMED_MESSAGE");
    const large = await post(new Uint8Array(1_048_577), "application/proto");
    expect(large).toContain("MESSAGE_TOO_LARGE");
    const halfPair = await post(`{"node":"web-1","reason":"\\ud800"}`, "application/json");
    expect(halfPair).toContain("invalid_argument");
  });
});

describe("operate() on one node, references", () => {
  it("should accept an exact id, also when other ids begin with it", async () => {
    expect((await rig.admin.approveNode({ node: "gpu" })).node?.id).toBe("gpu");
  });

  it("should find nothing when the node of a repeated request is gone", async () => {
    await addNode(rig.store, "once-1");
    await addNode(rig.store, "once-12");
    await rig.admin.deleteNode({ node: "once-1" });
    const repeated = await refusalOf(rig.admin.deleteNode({ node: "once-1" }));
    expect(repeated).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { suggestion: "once-12" } });
    expect(await getNode(rig.store.db, "once-12")).not.toBeNull();
  });
});

describe("operate() on one node, etags", () => {
  it("should carry out a decision on the state that was read, and change the etag", async () => {
    await addNode(rig.store, "versioned");
    const before = await getNode(rig.store.db, "versioned");
    const etag = before?.etag ?? "";
    const approved = await rig.admin.approveNode({ node: "versioned", etag });
    expect(approved.node?.etag).not.toBe(etag);
    const stale = rig.admin.rejectNode({ node: "versioned", etag });
    expect(await refusalOf(stale)).toMatchObject({ reason: "ETAG_MISMATCH" });
    const next = approved.node?.etag ?? "";
    const rejected = await rig.admin.rejectNode({ node: "versioned", etag: next });
    expect(rejected.node?.membership?.state).toBe(MembershipState.REJECTED);
  });

  it("should not accept the etag of a node that was deleted and returned", async () => {
    await addNode(rig.store, "reborn");
    const etag = (await getNode(rig.store.db, "reborn"))?.etag ?? "";
    await rig.admin.deleteNode({ node: "reborn", etag });
    await addNode(rig.store, "reborn");
    expect(await refusalOf(rig.admin.approveNode({ node: "reborn", etag }))).toMatchObject({
      reason: "ETAG_MISMATCH",
    });
  });

  it("should carry out one of two decisions on the same state", async () => {
    for (let round = 0; round < 10; round += 1) {
      const node = `contested-${round}`;
      await addNode(rig.store, node);
      const etag = (await getNode(rig.store.db, node))?.etag ?? "";
      const calls = [rig.admin.approveNode({ node, etag }), rig.admin.rejectNode({ node, etag })];
      const settled = await Promise.allSettled<unknown>(calls);
      expect(settled.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await eventsOf(rig.store, node)).toHaveLength(1);
    }
  });
});

describe("operate() on one node, request ids", () => {
  it("should repeat the first response, and do nothing more", async () => {
    await addNode(rig.store, "asked");
    const request = { node: "asked", reason: "fine", requestId: "r-1" };
    const first = await rig.admin.approveNode(request);
    await rig.admin.rejectNode({ node: "asked" });
    expect(await rig.admin.approveNode(request)).toEqual(first);
    expect((await getNode(rig.store.db, "asked"))?.membership.state).toBe("REJECTED");
    expect(await eventsOf(rig.store, "asked")).toHaveLength(2);
  });

  it("should repeat the first response when the node is gone", async () => {
    await addNode(rig.store, "leaving");
    const request = { node: "leaving", requestId: "r-2" };
    const first = await rig.admin.deleteNode(request);
    expect(await rig.admin.deleteNode(request)).toEqual(first);
  });

  it("should have one effect for many concurrent calls", async () => {
    await addNode(rig.store, "stormed");
    const request = { node: "stormed", requestId: "r-3" };
    const answers = await Promise.all(Array.from({ length: 10 }, () => rig.admin.cordonNode(request)));
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await eventsOf(rig.store, "stormed")).toHaveLength(1);
  });

  it("should distinguish the same id of another method or another caller", async () => {
    await addNode(rig.store, "shared");
    const request = { node: "shared", requestId: "r-4" };
    await rig.admin.approveNode(request);
    await rig.admin.rejectNode(request);
    const other = rig.client((await createToken(rig.store, "admin")).text);
    expect((await other.approveNode(request)).node?.membership?.state).toBe(MembershipState.APPROVED);
    expect(await eventsOf(rig.store, "shared")).toHaveLength(3);
  });

  it("should not remember what was refused", async () => {
    await addNode(rig.store, "later", "APPROVED");
    const request = { node: "later", requestId: "r-5" };
    expect(await refusalOf(rig.admin.approveNode(request))).toMatchObject({
      reason: "NODE_ALREADY_APPROVED",
    });
    await rig.admin.rejectNode({ node: "later" });
    const { node } = await rig.admin.approveNode(request);
    expect(node?.membership?.state).toBe(MembershipState.APPROVED);
  });
});
