import { describe, expect, it } from "@jest/globals";
import {
  type AgentSighting,
  ALTERNATION_WINDOW_MS,
  DUPLICATE_QUIET_MS,
  duplicatedHealth,
  findDuplicate,
  identityClearedEvent,
  identityDuplicatedEvent,
  isDuplicateOver,
  isKnownPair,
  latestPair,
  MOST_TAKEOVERS,
  TAKEOVER_WINDOW_MS,
} from "./duplicate-identity.ts";

/**
 * Parse sightings: "a@0 b@10" is machine a, then b ten seconds later. The name is the boot id; "a1/x" is process
 * x of that boot, and "!a" took over a connected session.
 */
function seen(text: string): readonly AgentSighting[] {
  return text.split(" ").map((word) => {
    const [agent = "", seconds] = word.replace("!", "").split("@");
    const [name = "", instanceId = ""] = agent.split("/");
    return {
      instanceId,
      bootId: name,
      fingerprint: name[0] ?? "",
      address: `${name}:1`,
      atMs: Number(seconds) * 1_000,
      tookOver: word.startsWith("!"),
    };
  });
}

/** Return the pair that is found when the last sighting arrives, as on a server. */
function found(text: string): string | null {
  const sightings = seen(text);
  const pair = findDuplicate(sightings, sightings.at(-1)?.atMs ?? 0);
  return pair?.map(({ bootId }) => bootId).join(" ") ?? null;
}

describe("findDuplicate()", () => {
  const windowS = ALTERNATION_WINDOW_MS / 1_000;
  const table: readonly [string, string, string | null][] = [
    ["one machine", "a@0", null],
    ["a move to another machine", "a@0 b@10", null],
    ["a move and back", "a@0 b@10 a@20", null],
    ["three changes between two", "a@0 b@10 a@20 b@30", "a b"],
    ["more changes", "a@0 b@10 a@20 b@30 a@40", "b a"],
    ["a machine that restarts three times", "a1@0 a2@10 a3@20 a4@30", null],
    ["a machine that restarts all the time", "a1@0 a2@1 a3@2 a4@3 a5@4 a6@5 a7@6 a8@7", null],
    ["two that alternate after months of one", "a@-999999 b@10 a@20 b@30", "a b"],
    ["three machines", "a@0 b@10 c@20 a@30", null],
    ["three machines that continue", "a@0 b@10 c@20 a@30 b@40", "a b"],
    ["a clone that restarts in between", "a@0 b1@10 a@20 b2@30 a@40", "b2 a"],
    ["two agents of one machine", "a/1@0 a/2@10 a/1@20 a/2@30", "a a"],
    ["an agent that restarts all the time", "a/1@0 a/2@1 a/3@2 a/4@3 a/5@4 a/6@5 a/7@6 a/8@7", null],
    ["an agent that restarts while its machine's stream stands", "a/1@0 !a/2@20 !a/3@40 !a/4@60 !a/5@81", null],
    ["a machine that is reverted to a snapshot", "a/1@0 !a/2@10 !a/1@20", null],
    ["many copies of one disk", "a/1@0 !b/2@1 !c/3@2 !d/4@3 !e/5@4", "d e"],
    ["as many restarts of one agent", "a/1@0 b/2@1 c/3@2 d/4@3 e/5@4", null],
    ["changes that just fit the window", `a@0 b@10 a@20 b@${10 + windowS}`, "a b"],
    ["changes that do not", `a@0 b@10 a@20 b@${10 + windowS}.001`, null],
  ];
  it.each(table)("should evaluate %s", (_, sightings, pair) => {
    expect(found(sightings)).toBe(pair);
  });

  it("should count takeovers of a minute", () => {
    const taken = (count: number) =>
      seen(`a@0 ${Array.from({ length: count }, (_, index) => `!b${index}@1`).join(" ")}`);
    expect(findDuplicate(taken(MOST_TAKEOVERS), 1_000)).toBeNull();
    expect(findDuplicate(taken(MOST_TAKEOVERS + 1), 1_000 + TAKEOVER_WINDOW_MS)).not.toBeNull();
    expect(findDuplicate(taken(MOST_TAKEOVERS + 1), 1_001 + TAKEOVER_WINDOW_MS)).toBeNull();
  });

  it("should forget sightings that are older than the window", () => {
    const sightings = seen("a@0 b@10 a@20 b@30");
    expect(findDuplicate(sightings, 10_000 + ALTERNATION_WINDOW_MS)).not.toBeNull();
    expect(findDuplicate(sightings, 30_001 + ALTERNATION_WINDOW_MS)).toBeNull();
  });
});

describe("isDuplicateOver()", () => {
  it("should wait for the quiet time after the last change", () => {
    const sightings = seen("a@0 b@10");
    expect(isDuplicateOver(sightings, 10_000 + DUPLICATE_QUIET_MS - 1)).toBe(false);
    expect(isDuplicateOver(sightings, 10_000 + DUPLICATE_QUIET_MS)).toBe(true);
    expect(isDuplicateOver([], 0)).toBe(true);
  });
});

describe("duplicatedHealth()", () => {
  it("should leave the state and its time, and name both machines", () => {
    const health = {
      state: "HEALTHY",
      sinceMs: 7,
      reason: "HEARTBEAT_RECEIVED",
      message: "",
      actor: "r",
    } as const;
    const [first, second] = seen("alpha@0 beta@1");
    if (first === undefined || second === undefined) throw new Error("two were seen");
    const shown = duplicatedHealth(health, [first, second]);
    expect(shown).toMatchObject({ state: "HEALTHY", sinceMs: 7, reason: "DUPLICATE_IDENTITY" });
    expect(shown.message).toContain("machine a boot alpha at alpha and machine b boot beta at beta;");
  });
});

describe("isKnownPair()", () => {
  const [first, second, third] = seen("alpha@0 beta@1 gamma@2");
  if (first === undefined || second === undefined || third === undefined) throw new Error("three");

  it("should not mind which of the two came last, nor from which port", () => {
    expect(isKnownPair([first, second], [second, first])).toBe(true);
    expect(isKnownPair([first, second], [first, { ...second, address: "beta:2" }])).toBe(true);
  });

  it("should not mind a restart of one of them", () => {
    expect(isKnownPair([first, { ...second, instanceId: "again" }], [first, second])).toBe(true);
    expect(isKnownPair([first, { ...first, instanceId: "again" }], [first, second])).toBe(true);
  });

  it("should distinguish another machine from the same one at another address", () => {
    expect(isKnownPair([first, second], [first, third])).toBe(false);
    expect(isKnownPair([first, second], [first, { ...second, address: "delta:1" }])).toBe(false);
    expect(isKnownPair([first, second], null)).toBe(false);
  });
});

describe("the events of an identity", () => {
  const by = { instanceId: "i", tookOver: true };
  const one = { ...by, bootId: "b".repeat(20), fingerprint: "", address: "10.0.0.1:45123", atMs: 0 };
  const other = { ...by, bootId: "c", fingerprint: "f".repeat(20), address: "[::1]:45", atMs: 1 };

  it("should describe two machines, with everything that distinguishes them", () => {
    expect(identityDuplicatedEvent("n1", [other, one], "replica:h1")).toEqual({
      ...{ type: "node.identity.duplicated", subject: "n1", actor: "replica:h1", reason: "DUPLICATE_IDENTITY" },
      message: "machine ffffffffffff boot c at [::1] and machine unknown boot bbbbbbbbbbbb at 10.0.0.1 alternate",
      before: null,
      after: {
        machines: [
          { instanceId: "i", fingerprint: "f".repeat(20), bootId: "c", address: "[::1]:45" },
          { instanceId: "i", fingerprint: "", bootId: "b".repeat(20), address: "10.0.0.1:45123" },
        ],
      },
    });
  });

  it("should report when one is left", () => {
    expect(identityClearedEvent("n1", "replica:h1")).toEqual({
      ...{ type: "node.identity.cleared", subject: "n1", actor: "replica:h1", reason: "ONE_MACHINE_LEFT" },
      ...{ message: "only one agent for 10 minutes", before: null, after: null },
    });
  });

  it("should say where both run when they share a machine", () => {
    const { message } = identityDuplicatedEvent("n1", [one, { ...one, instanceId: "j" }], "replica:h1");
    expect(message).toBe("two agents on machine unknown boot bbbbbbbbbbbb at 10.0.0.1 alternate");
  });

  it("should name two machines where there are two, whichever agents were seen last", () => {
    expect(latestPair([other, one, { ...one, instanceId: "j" }])).toEqual([other, { ...one, instanceId: "j" }]);
  });

  it("should find the last two machines, and none if there is one", () => {
    expect(latestPair([])).toBeNull();
    expect(latestPair([one])).toBeNull();
    expect(latestPair([other, one, other])).toEqual([one, other]);
  });

  it("should distinguish machines with the same boot id", () => {
    const cloned = { ...other, fingerprint: "g" };
    const sightings = [other, cloned, other, cloned].map((it, index) => ({ ...it, atMs: index }));
    expect(findDuplicate(sightings, 4)).toEqual(sightings.slice(2));
    const three = [other, cloned, { ...other, fingerprint: "h" }, { ...other, fingerprint: "i" }];
    const restarts = three.map((it) => ({ ...it, tookOver: false }));
    expect(findDuplicate(restarts, 4)).toBeNull();
  });

  it("should be over with nothing seen", () => {
    expect(isDuplicateOver([], 0)).toBe(true);
  });
});
