import { describe, expect, it } from "@jest/globals";
import type { AgentSighting } from "../membership/duplicate-identity.ts";
import { type OpenedSession, planOpening } from "./session-opening.ts";

const NOW_MS = 1_000_000;
const STATED = { sinceMs: 0, message: "", actor: "replica:r1" } as const;
const CONNECTED = { ...STATED, state: "CONNECTED", reason: "STREAM_OPENED" } as const;
const BROKEN = { ...STATED, state: "DISCONNECTED", reason: "STREAM_BROKEN" } as const;

/** Plan the opening of a session by the same replica, machine and key as before, with these changes. */
function opened(
  changes: Partial<Omit<OpenedSession, "before">> & { readonly before?: Partial<OpenedSession["before"]> } = {},
): OpenedSession {
  const { before, ...rest } = changes;
  return {
    ...{ nodeId: "n", replicaId: "r1", bootId: "a", machineFingerprint: "f", key: "k" },
    ...{ retiredKey: null, machines: [], nowMs: NOW_MS },
    ...rest,
    before: {
      ...{ connection: CONNECTED, replicaId: "r1", bootId: "a", machineFingerprint: "f" },
      ...{ machines: [], isDuplicated: false, suspectedReboot: null },
      ...before,
    },
  };
}

const seen = (bootId: string, agoMs: number): AgentSighting => ({
  ...{ instanceId: "", bootId, fingerprint: "f", address: "10.0.0.1:1", atMs: NOW_MS - agoMs, tookOver: true },
});
const ALTERNATING = [seen("a", 400_000), seen("b", 30_000), seen("a", 20_000), seen("b", 10_000)];

describe("planOpening()", () => {
  it.each<[string, OpenedSession, readonly string[]]>([
    ["the same replica again", opened(), []],
    ["a node that was away", opened({ before: { connection: BROKEN } }), ["node.connection.changed"]],
    ["another replica", opened({ replicaId: "r2" }), ["node.session.moved"]],
    ["the first replica of all", opened({ before: { replicaId: null } }), []],
    ["the first use of a next key", opened({ retiredKey: "old" }), ["node.key.rotated"]],
    [
      "a restarted machine",
      opened({ bootId: "b", before: { connection: BROKEN } }),
      ["node.connection.changed", "node.rebooted"],
    ],
    ["another boot while the one before is connected", opened({ bootId: "b" }), []],
    [
      "a boot that was seen before",
      opened({ bootId: "b", before: { connection: BROKEN, machines: [seen("b", 20_000), seen("a", 10_000)] } }),
      ["node.connection.changed"],
    ],
    ["another machine", opened({ bootId: "b", machineFingerprint: "g" }), []],
    [
      "a machine that was restarted after a goodbye",
      opened({ bootId: "b", before: { connection: { ...BROKEN, reason: "AGENT_SHUTDOWN" } } }),
      ["node.connection.changed"],
    ],
    ["two machines that alternate", opened({ machines: ALTERNATING }), ["node.identity.duplicated"]],
    [
      "two machines that are known to alternate",
      opened({ machines: ALTERNATING, before: { machines: ALTERNATING.slice(0, -1), isDuplicated: true } }),
      [],
    ],
    [
      "a third machine next to two known ones",
      opened({
        machines: [...ALTERNATING, seen("c", 0)],
        before: { machines: ALTERNATING, isDuplicated: true },
      }),
      ["node.identity.duplicated"],
    ],
  ])("should report %s", (_, session, types) => {
    const plan = planOpening(session);
    expect(plan.events.map(({ type }) => type)).toEqual(types);
    expect(plan.isDuplicated).toBe(types.includes("node.identity.duplicated"));
    expect(plan.hasRebooted).toBe(types.includes("node.rebooted"));
  });

  it.each<[string, OpenedSession, string]>([
    ["a connected node", opened({ replicaId: "r2" }), "r1"],
    ["a node that was away", opened({ replicaId: "r2", before: { connection: BROKEN } }), "r1"],
    ["none, where it held the node itself", opened({ before: { connection: BROKEN } }), ""],
    ["none, where no replica held the node", opened({ before: { connection: BROKEN, replicaId: null } }), ""],
  ])("should name the replica that loses %s", (_, session, displaces) => {
    expect(planOpening(session).events.map((event) => event.displaces)).toEqual([displaces]);
  });

  it("should order several events of one session", () => {
    const session = opened({
      ...{ retiredKey: "old", bootId: "b", machines: ALTERNATING },
      before: { connection: BROKEN },
    });
    expect(planOpening(session).events.map(({ type }) => type)).toEqual([
      "node.key.rotated",
      "node.connection.changed",
      "node.identity.duplicated",
    ]);
  });

  it("should suspect a reboot while the boot before is connected, until that boot comes back", () => {
    const suspected = { before: "a", after: "b", atMs: NOW_MS };
    expect(planOpening(opened({ bootId: "b" })).suspectedReboot).toEqual(suspected);
    const since = (bootId: string, isDuplicated = false) =>
      planOpening(
        opened({ bootId, before: { bootId: "b", suspectedReboot: suspected, isDuplicated, machines: [seen("a", 9)] } }),
      );
    expect(since("b").suspectedReboot).toBe(suspected);
    expect(since("a").suspectedReboot).toBeNull();
    expect(since("b", true).suspectedReboot).toBeNull();
  });

  it("should distinguish a takeover of a connected session from a restart, a move and the first session", () => {
    const [a, b] = [seen("a", 10_000), seen("b", 0)];
    const isTakenOver = (machines: readonly AgentSighting[], before: readonly AgentSighting[]) =>
      planOpening(opened({ machines, before: { machines: before } })).isTakenOver;
    expect(isTakenOver([a, b], [a])).toBe(true);
    expect(isTakenOver([a, { ...b, tookOver: false }], [a])).toBe(false);
    expect(isTakenOver([a, b], [a, b])).toBe(false);
    expect(isTakenOver([a], [])).toBe(false);
  });
});
