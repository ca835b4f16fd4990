import { describe, expect, it } from "@jest/globals";
import {
  type AgentKeys,
  afterAccepted,
  afterAnswer,
  afterNewKey,
  afterRefused,
  keysOnDisk,
  keyToUse,
} from "./agent-keys.ts";
import { keyOfferedEvent, keyRotatedEvent } from "./key-events.ts";
import { acceptKey, decideRotation, type NodeIdentity, type RotationRequest } from "./key-rotation.ts";

const A: NodeIdentity = { current: "a", next: null };
const A_B: NodeIdentity = { current: "a", next: "b" };

function request(used: string, offered: string, more: Partial<RotationRequest> = {}) {
  return { nodeId: "n1", used, offered, otherOwner: null, banReason: null, ...more };
}

describe("acceptKey()", () => {
  it("should take the current key, and change nothing", () => {
    expect(acceptKey(A, "a")).toEqual({ accepted: true, identity: A, promoted: false });
    expect(acceptKey(A_B, "a")).toEqual({ accepted: true, identity: A_B, promoted: false });
  });

  it("should make the next key the current one when it is first used", () => {
    const identity = { current: "b", next: null };
    expect(acceptKey(A_B, "b")).toEqual({ accepted: true, identity, promoted: true });
    expect(acceptKey(identity, "a")).toEqual({ accepted: false });
  });

  it("should refuse every other key", () => {
    expect(acceptKey(A, "b")).toEqual({ accepted: false });
    expect(acceptKey(A_B, "c")).toEqual({ accepted: false });
  });
});

describe("decideRotation()", () => {
  const table: readonly [string, NodeIdentity, RotationRequest, NodeIdentity, boolean][] = [
    ["take an offer", A, request("a", "b"), A_B, false],
    ["take the same offer again", A_B, request("a", "b"), A_B, false],
    ["let another offer take its place", A_B, request("a", "c"), { ...A, next: "c" }, false],
    ["confirm an offer by its own key", A_B, request("b", "b"), { current: "b", next: null }, true],
    ["take an offer by the next key", A_B, request("b", "c"), { current: "b", next: "c" }, true],
    ["change nothing for the current key", A, request("a", "a"), A, false],
  ];
  it.each(table)("should %s", (_, identity, asked, after, promoted) => {
    expect(decideRotation(identity, asked)).toEqual({ ok: true, identity: after, promoted });
  });

  it("should refuse a caller with neither key", () => {
    const decision = decideRotation({ current: "b", next: null }, request("a", "c"));
    expect(decision).toMatchObject({ ok: false, refusal: { reason: "PROOF_INVALID" } });
  });

  it("should refuse a key of another node, and a banned one", () => {
    expect(decideRotation(A, request("a", "x", { otherOwner: "n2" }))).toMatchObject({
      refusal: { reason: "NODE_KEY_IN_USE", metadata: { node: "n1", owner: "n2" } },
    });
    expect(decideRotation(A, request("a", "x", { banReason: "stolen" }))).toMatchObject({
      refusal: { reason: "NODE_BANNED", metadata: { node: "n1", banReason: "stolen" } },
    });
  });
});

describe("the keys of an agent", () => {
  const prepared: AgentKeys = { phase: "prepared", current: "a", next: "b" };
  const offered: AgentKeys = { phase: "offered", current: "a", next: "b" };
  const settled: AgentKeys = { phase: "settled", current: "b" };

  it("should use the current key until the server has the next one", () => {
    expect(keyToUse(prepared)).toBe("a");
    expect(keyToUse(afterAnswer(prepared, { current: "a", next: "b" }))).toBe("b");
    expect(afterAccepted(offered, "b")).toEqual(settled);
  });

  it("should not give up a key for an acceptance of the current one, or for a refusal", () => {
    expect(afterAccepted(offered, "a")).toBe(offered);
    expect(afterRefused(prepared, "a")).toEqual(offered);
    expect(afterRefused(offered, "b")).toEqual(prepared);
    expect(afterRefused(settled, "b")).toBe(settled);
  });

  it("should not heed answers to offers of other keys", () => {
    expect(afterAnswer(prepared, { current: "a", next: "z" })).toBe(prepared);
    expect(afterAnswer(prepared, { current: "z", next: null })).toBe(prepared);
    expect(afterAnswer(settled, { current: "a", next: "b" })).toBe(settled);
  });

  it("should learn from an answer that the next key was used, although nothing else arrived", () => {
    expect(afterAnswer(prepared, { current: "b", next: null })).toEqual(settled);
  });

  it("should start with the keys on the disk", () => {
    expect(keysOnDisk("a", null)).toEqual({ phase: "settled", current: "a" });
    expect(keysOnDisk("b", "b")).toEqual(settled);
    expect(keysOnDisk("a", "b")).toEqual(prepared);
  });

  it("should continue with an existing next key", () => {
    expect(afterNewKey(prepared, "c")).toBe(prepared);
    expect(afterNewKey(settled, "c")).toEqual({ phase: "prepared", current: "b", next: "c" });
  });
});

describe("the events of keys", () => {
  it.each([
    [null, null],
    ["old", { nextKeyFingerprint: "old" }],
  ])("should describe a key that is offered instead of %j", (before, told) => {
    const event = keyOfferedEvent({ subject: "n1", before, after: "next" });
    expect(event).toMatchObject({ subject: "n1", before: told, after: { nextKeyFingerprint: "next" } });
  });

  it("should describe a key that was used for the first time", () => {
    expect(keyRotatedEvent({ subject: "n1", before: "old", after: "new" })).toMatchObject({
      ...{ subject: "n1", before: { keyFingerprint: "old" }, after: { keyFingerprint: "new" } },
    });
  });
});
