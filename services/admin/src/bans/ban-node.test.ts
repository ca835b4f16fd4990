import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MembershipState } from "@rollcall/api/rollcall/node/v1/node_pb";
import { findBans, getNode } from "@rollcall/store";
import { createTestDatabase, refusalOf } from "@rollcall/testkit";
import { addNode, addOrchestrator, eventsOf } from "../testing/record.ts";
import { type Rig, startRig } from "../testing/rig.ts";

let rig: Rig;
beforeAll(async () => {
  rig = await startRig(await createTestDatabase());
});
afterAll(() => rig.close());

async function bansOn(nodeId: string) {
  const fingerprints = [`SHA256:${nodeId}`];
  const bans = await findBans(rig.store.db, { nodeIds: [nodeId], fingerprints });
  return bans.map((ban) => [ban.nodeId, ban.fingerprint, ban.reason]);
}

describe("banNode()", () => {
  it.each(["PENDING", "APPROVED", "REJECTED"] as const)(
    "should reject a node that is %s, and ban its id and its key",
    async (state) => {
      const id = `was-${state}`;
      await addNode(rig.store, id, state);
      const { node, ban } = await rig.admin.banNode({ node: id, reason: "stolen" });
      const said = { reason: "OPERATOR_BANNED", message: "stolen", actor: rig.operator.actor };
      expect(node?.membership).toMatchObject({ state: MembershipState.REJECTED, ...said });
      expect(ban).toMatchObject({ nodeId: id, fingerprint: `SHA256:${id}`, reason: "stolen" });
      expect(await bansOn(id)).toEqual([[id, `SHA256:${id}`, "stolen"]]);
      expect(await eventsOf(rig.store, id)).toMatchObject([
        {
          type: "node.banned",
          before: { membership: state },
          after: { membership: "REJECTED", banned: true },
          ...said,
        },
      ]);
    },
  );

  it("should refuse a second ban, a rejection and an approval, and say what to do", async () => {
    await addNode(rig.store, "twice");
    await rig.admin.banNode({ node: "twice", reason: "stolen" });
    expect(await refusalOf(rig.admin.banNode({ node: "twice" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_ALREADY_BANNED",
    });
    expect(await refusalOf(rig.admin.rejectNode({ node: "twice" }))).toMatchObject({
      reason: "NODE_ALREADY_REJECTED",
    });
    const approval = await refusalOf(rig.admin.approveNode({ node: "twice" }));
    expect(approval).toMatchObject({ code: Code.PermissionDenied, reason: "NODE_BANNED" });
    expect(approval.message).toBe("node twice has been banned: stolen; lift the ban first");
    expect(await eventsOf(rig.store, "twice")).toHaveLength(1);
  });

  it("should leave the ban when the node is deleted", async () => {
    await addNode(rig.store, "buried");
    await rig.admin.banNode({ node: "buried" });
    await rig.admin.deleteNode({ node: "buried" });
    expect(await bansOn("buried")).toHaveLength(1);
    expect(await refusalOf(rig.admin.banNode({ nodeId: "buried" }))).toMatchObject({
      reason: "NODE_ALREADY_BANNED",
    });
    const { node, bans } = await rig.admin.unbanNode({ node: "buried" });
    expect(node).toBeUndefined();
    expect(bans).toHaveLength(1);
    expect(await bansOn("buried")).toEqual([]);
  });

  it("should ban an id without a node, and a key", async () => {
    expect((await rig.admin.banNode({ nodeId: "ghost", reason: "never" })).node).toBeUndefined();
    expect(await bansOn("ghost")).toEqual([["ghost", null, "never"]]);
    const unused = "n".repeat(43);
    await rig.admin.banNode({ fingerprint: `SHA256:${unused}`, reason: "leaked" });
    expect(await bansOn(unused)).toEqual([[null, `SHA256:${unused}`, "leaked"]]);
    expect(await eventsOf(rig.store, "ghost")).toMatchObject([
      { type: "node.banned", before: null, after: { banned: true } },
    ]);
    expect(await eventsOf(rig.store, `SHA256:${unused}`)).toHaveLength(1);
    expect(await refusalOf(rig.admin.banNode({ nodeId: "no such id" }))).toMatchObject({
      reason: "INVALID_NODE_ID",
    });
    expect(await refusalOf(rig.admin.banNode({ fingerprint: "SHA256:cut-sho" }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });

  it("should distinguish an exact id from a prefix of another", async () => {
    await addNode(rig.store, "exact-10");
    const missing = await refusalOf(rig.admin.banNode({ node: "exact-1" }));
    expect(missing).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { suggestion: "exact-10" } });
    await rig.admin.banNode({ nodeId: "exact-1" });
    expect((await getNode(rig.store.db, "exact-10"))?.membership.state).toBe("PENDING");
    expect(await bansOn("exact-1")).toEqual([["exact-1", null, ""]]);
    // Lifting a ban also needs the exact id.
    expect((await rig.admin.unbanNode({ node: "exact-1" })).node).toBeUndefined();
  });

  it("should ban the node that has a banned key", async () => {
    await addNode(rig.store, "key-owner", "APPROVED");
    const { node } = await rig.admin.banNode({ fingerprint: "SHA256:key-owner" });
    expect(node?.membership?.state).toBe(MembershipState.REJECTED);
    expect(await bansOn("key-owner")).toEqual([["key-owner", "SHA256:key-owner", ""]]);
  });

  it("should refuse a control-plane process", async () => {
    await addOrchestrator(rig.store, "control");
    expect(await refusalOf(rig.admin.banNode({ node: "control" }))).toMatchObject({
      reason: "NODE_IS_ORCHESTRATOR",
    });
    expect(await bansOn("control")).toEqual([]);
  });

  it("should create one of many concurrent bans, and repeat the first response for its request id", async () => {
    await addNode(rig.store, "stormed");
    const calls = Array.from({ length: 8 }, () => rig.admin.banNode({ node: "stormed" }));
    const settled = await Promise.allSettled(calls);
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await eventsOf(rig.store, "stormed")).toHaveLength(1);
    const request = { nodeId: "named", requestId: "b-1" };
    const first = await rig.admin.banNode(request);
    expect(await rig.admin.banNode(request)).toEqual(first);
  });

  it("should change nothing in a dry run", async () => {
    await addNode(rig.store, "asked");
    const { node, ban } = await rig.admin.banNode({ node: "asked", validateOnly: true });
    expect([node?.id, ban]).toEqual(["asked", undefined]);
    await rig.admin.banNode({ nodeId: "asked-2", validateOnly: true });
    expect([await bansOn("asked"), await bansOn("asked-2")]).toEqual([[], []]);
  });
});

describe("unbanNode()", () => {
  it("should lift the ban and leave the node rejected, until it is approved", async () => {
    await addNode(rig.store, "forgiven", "APPROVED");
    await rig.admin.banNode({ node: "forgiven", reason: "stolen" });
    const { node, bans } = await rig.admin.unbanNode({ node: "forgiven", reason: "found again" });
    const said = { reason: "BAN_LIFTED", message: "found again", actor: rig.operator.actor };
    expect(node?.membership).toMatchObject({ state: MembershipState.REJECTED, ...said });
    expect(bans).toMatchObject([{ nodeId: "forgiven", reason: "stolen" }]);
    expect(await bansOn("forgiven")).toEqual([]);
    const approved = await rig.admin.approveNode({ node: "forgiven" });
    expect(approved.node?.membership?.state).toBe(MembershipState.APPROVED);
    expect((await eventsOf(rig.store, "forgiven")).map(({ type }) => type)).toEqual([
      "node.banned",
      "node.unbanned",
      "node.approved",
    ]);
  });

  it("should refuse a node that is not banned, and a missing one", async () => {
    await addNode(rig.store, "innocent", "REJECTED");
    expect(await refusalOf(rig.admin.unbanNode({ node: "innocent" }))).toMatchObject({
      code: Code.FailedPrecondition,
      reason: "NODE_NOT_BANNED",
    });
    expect(await refusalOf(rig.admin.unbanNode({ node: "nobody-here" }))).toMatchObject({
      reason: "NODE_NOT_FOUND",
    });
    await rig.admin.banNode({ nodeId: "away-10" });
    await addNode(rig.store, "away-11");
    expect(await refusalOf(rig.admin.unbanNode({ node: "away-1" }))).toMatchObject({
      reason: "NODE_NOT_FOUND",
      metadata: { node: "away-1", suggestion: "away-10" },
    });
    expect(await bansOn("away-10")).toHaveLength(1);
    expect(await refusalOf(rig.admin.unbanNode({ fingerprint: "SHA256:x" }))).toMatchObject({
      reason: "NODE_NOT_BANNED",
    });
  });

  it("should lift the ban of a key, together with that of its node", async () => {
    await addNode(rig.store, "key-2");
    await rig.admin.banNode({ node: "key-2" });
    const { node } = await rig.admin.unbanNode({ fingerprint: "SHA256:key-2" });
    expect(node?.membership?.reason).toBe("BAN_LIFTED");
    expect(await bansOn("key-2")).toEqual([]);
  });
});

describe("listBans()", () => {
  it("should return every ban once, newest first, page by page", async () => {
    for (let index = 0; index < 5; index += 1) {
      await rig.admin.banNode({ nodeId: `listed-${index}` });
    }
    const listed: string[] = [];
    let pageToken = "";
    do {
      const page = await rig.admin.listBans({ pageSize: 2, pageToken });
      listed.push(...page.bans.map(({ nodeId }) => nodeId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(listed.slice(0, 5)).toEqual([4, 3, 2, 1, 0].map((index) => `listed-${index}`));
    expect(new Set(listed).size).toBe(listed.length);
    expect(await refusalOf(rig.admin.listBans({ pageToken: "guess" }))).toMatchObject({
      reason: "INVALID_PAGE_TOKEN",
    });
  });
});
