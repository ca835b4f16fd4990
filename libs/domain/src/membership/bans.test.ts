import { describe, expect, it } from "@jest/globals";
import { nodeRecord } from "../testing/node.ts";
import {
  type Ban,
  bannedNamesOf,
  bannedRefusal,
  isBanned,
  isKeyFingerprint,
  MEMBERSHIP_BANNED,
  missingBans,
} from "./ban.ts";
import { banInAdvance, isBareBan, liftBareBans } from "./bare-bans.ts";

const BY = { actor: "token:t", message: "why", atMs: 9 };
const STATED = { sinceMs: 0, reason: "R", message: "", actor: "system" } as const;
const BANNED = { ...STATED, state: "REJECTED", reason: MEMBERSHIP_BANNED } as const;
const ban = (id: bigint, nodeId: string | null, fingerprint: string | null): Ban => ({
  ...{ id, nodeId, fingerprint, reason: "", actor: "token:x", atMs: 0 },
});

describe("missingBans()", () => {
  const names = { nodeIds: ["n"], fingerprints: ["k1", "k2"] };
  it.each<[string, readonly Ban[], readonly (readonly [string | null, string | null])[]]>([
    [
      "nothing banned",
      [],
      [
        ["n", "k1"],
        [null, "k2"],
      ],
    ],
    [
      "the id banned",
      [ban(1n, "n", null)],
      [
        [null, "k1"],
        [null, "k2"],
      ],
    ],
    ["a key banned", [ban(1n, null, "k1")], [["n", "k2"]]],
    ["both keys banned", [ban(1n, null, "k1"), ban(2n, null, "k2")], [["n", null]]],
    ["everything banned", [ban(1n, "n", "k1"), ban(2n, null, "k2")], []],
  ])("should complete %s", (_, earlier, expected) => {
    const placed = missingBans(names, earlier, BY).map(({ nodeId, fingerprint }) => [nodeId, fingerprint]);
    expect(placed).toEqual(expected);
  });
});

describe("banInAdvance() and liftBareBans()", () => {
  it("should ban a name once, and lift its bans", () => {
    const name = { nodeId: "x", fingerprint: null };
    expect(banInAdvance(name, [], BY)).toMatchObject({
      effects: [{ nodeId: "x", fingerprint: null, reason: "why", actor: "token:t" }],
      events: [{ type: "node.banned", subject: "x" }],
    });
    const on = [ban(4n, "x", null)];
    expect(banInAdvance(name, on, BY)).toMatchObject({ refusal: { reason: "NODE_ALREADY_BANNED" } });
    expect(liftBareBans("x", on, BY)).toMatchObject({ effects: [4n], events: [{ type: "node.unbanned" }] });
    expect(liftBareBans("x", [], BY)).toMatchObject({ refusal: { reason: "NODE_NOT_BANNED" } });
  });

  it("should refuse a ban or unban of a name that no node has", () => {
    const name = { nodeId: null, fingerprint: "SHA256:x" };
    expect(banInAdvance(name, [], BY)).toMatchObject({
      effects: [{ fingerprint: "SHA256:x", reason: "why", actor: "token:t" }],
      events: [{ type: "node.banned", subject: "SHA256:x" }],
    });
    expect(banInAdvance(name, [ban(1n, null, "SHA256:x")], BY)).toMatchObject({
      ok: false,
      refusal: { message: expect.stringContaining("is already banned") },
    });
    expect(liftBareBans("x", [], BY)).toMatchObject({
      ok: false,
      refusal: { message: expect.stringContaining("is not banned") },
    });
  });

  it.each([
    ["no node", null, [ban(1n, "x", null)], true],
    ["a node that shows it", { membership: BANNED }, [ban(1n, "x", null)], false],
    ["a node that took the key later", nodeRecord(), [ban(1n, null, "k")], true],
    ["no ban at all", nodeRecord(), [], false],
  ])("should detect whether a ban on %s is bare", (_, node, bans, expected) => {
    expect(isBareBan(node, bans)).toBe(expected);
  });
});

describe("isKeyFingerprint() and bannedRefusal()", () => {
  const KEY = `SHA256:${"a".repeat(43)}`;

  it.each([
    [KEY, true],
    [`x${KEY}`, false],
    [`${KEY}x`, false],
    ["SHA256:a", false],
    [`SHA256:${"?".repeat(43)}`, false],
  ])("should describe %s: %s", (text, expected) => {
    expect(isKeyFingerprint(text)).toBe(expected);
  });

  it.each([
    ["", "no reason given"],
    ["stolen", "stolen"],
  ])("should say why a node is banned: %j", (reason, said) => {
    expect(bannedRefusal("n1", reason)).toEqual({
      ...{ reason: "NODE_BANNED", message: `node n1 has been banned: ${said}` },
      metadata: { node: "n1", banReason: said },
    });
  });

  it("should ban no key that is not there", () => {
    const node = { id: "n1", keyFingerprint: null, nextKeyFingerprint: "k2" };
    expect(bannedNamesOf(node)).toEqual({ nodeIds: ["n1"], fingerprints: ["k2"] });
    expect(isBanned({ state: "APPROVED", reason: MEMBERSHIP_BANNED })).toBe(false);
  });
});
