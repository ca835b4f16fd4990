import { describe, expect, it } from "@jest/globals";
import { nodeRecord } from "../testing/node.ts";
import { type Ban, MEMBERSHIP_BANNED } from "./ban.ts";
import { banNode, changeMembership, unbanNode } from "./membership.ts";

const BY = { actor: "token:t", message: "why", atMs: 9 };
const STATED = { sinceMs: 0, reason: "R", message: "", actor: "system" } as const;
const BANNED = { ...STATED, state: "REJECTED", reason: MEMBERSHIP_BANNED } as const;
const ban = (id: bigint, nodeId: string | null, fingerprint: string | null): Ban => ({
  ...{ id, nodeId, fingerprint, reason: "", actor: "token:x", atMs: 0 },
});

describe("changeMembership()", () => {
  it("should approve the hardware with the node", () => {
    const pending = nodeRecord({ membership: { ...STATED, state: "PENDING" } });
    expect(changeMembership(pending, { kind: "approve" }, BY)).toMatchObject({
      ok: true,
      effects: [{ kind: "membership", membership: { state: "APPROVED", sinceMs: 9 } }, { kind: "accept-hardware" }],
      events: [{ type: "node.approved", actor: "token:t", message: "why" }],
    });
  });

  it("should leave nothing to react to of a node that is rejected", () => {
    expect(changeMembership(nodeRecord(), { kind: "reject" }, BY)).toMatchObject({
      effects: [{ kind: "membership", membership: { state: "REJECTED" } }, { kind: "drop-loss" }],
      events: [{ type: "node.rejected" }],
    });
  });

  it.each([
    ["delete", "OPERATOR_DELETED"],
    ["deregister", "AGENT_DEREGISTERED"],
  ] as const)("should remove a node by %s with the reason of the event", (kind, reason) => {
    expect(changeMembership(nodeRecord(), { kind }, BY)).toMatchObject({
      effects: [{ kind: "removal", removal: { actor: "token:t", reason, message: "why" } }],
      events: [{ reason }],
    });
  });

  it("should ban what of a node is not banned yet, and lift all of it", () => {
    const node = nodeRecord({ nextKeyFingerprint: "SHA256:next" });
    const earlier = [ban(1n, null, "SHA256:n")];
    expect(banNode(node, BY, earlier)).toMatchObject({
      effects: [
        { kind: "membership", membership: { reason: MEMBERSHIP_BANNED } },
        { kind: "drop-loss" },
        { kind: "place-bans", bans: [{ nodeId: "n", fingerprint: "SHA256:next", reason: "why", actor: "token:t" }] },
      ],
      events: [{ type: "node.banned" }],
    });
    expect(unbanNode(nodeRecord({ membership: BANNED }), BY, earlier)).toMatchObject({
      effects: [{ kind: "membership" }, { kind: "drop-loss" }, { kind: "lift-bans", ids: [1n] }],
      events: [{ type: "node.unbanned" }],
    });
  });

  it("should refuse by the table", () => {
    expect(changeMembership(nodeRecord(), { kind: "approve" }, BY)).toMatchObject({
      ok: false,
      refusal: { reason: "NODE_ALREADY_APPROVED" },
    });
  });

  it("should remove a process of the control plane only once it is gone", () => {
    const orchestrator = nodeRecord({ type: "ORCHESTRATOR", connection: { ...STATED, state: "CONNECTED" } });
    expect(changeMembership(orchestrator, { kind: "delete" }, BY)).toMatchObject({ ok: false });
    const gone = nodeRecord({ type: "ORCHESTRATOR", connection: { ...STATED, state: "DISCONNECTED" } });
    expect(changeMembership(gone, { kind: "delete" }, BY)).toMatchObject({
      ok: true,
      effects: [{ kind: "removal" }],
    });
  });
});
