import { describe, expect, it } from "@jest/globals";
import {
  ALTERNATION_WINDOW_MS,
  DUPLICATE_QUIET_MS,
  duplicatedHealth,
  findDuplicate,
  identityClearedEvent,
  identityDuplicatedEvent,
  isDuplicateOver,
  isSamePair,
  latestPair,
  type MachineSighting,
} from "./duplicate-identity.ts";

/** "a@0 b@10": machine a, then b ten seconds later. The boot id is the name. */
function seen(text: string): readonly MachineSighting[] {
  return text.split(" ").map((word) => {
    const [name = "", seconds] = word.split("@");
    return {
      bootId: name,
      fingerprint: name[0] ?? "",
      address: `${name}:1`,
      atMs: Number(seconds) * 1_000,
    };
  });
}

/** Judged when the last one came, as a server does. */
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
    ["three machines that go on", "a@0 b@10 c@20 a@30 b@40", "a b"],
    ["a clone that restarts in between", "a@0 b1@10 a@20 b2@30 a@40", "b2 a"],
    ["changes that just fit the window", `a@0 b@10 a@20 b@${10 + windowS}`, "a b"],
    ["changes that do not", `a@0 b@10 a@20 b@${10 + windowS}.001`, null],
  ];
  it.each(table)("should judge %s", (_, sightings, pair) => {
    expect(found(sightings)).toBe(pair);
  });

  it("should forget what is older than the window", () => {
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

describe("isSamePair()", () => {
  const [first, second, third] = seen("alpha@0 beta@1 gamma@2");
  if (first === undefined || second === undefined || third === undefined) throw new Error("three");

  it("should not mind which of the two came last, nor from which port", () => {
    expect(isSamePair([first, second], [second, first])).toBe(true);
    expect(isSamePair([first, second], [first, { ...second, address: "beta:2" }])).toBe(true);
  });

  it("should distinguish another machine from the same one at another address", () => {
    expect(isSamePair([first, second], [first, third])).toBe(false);
    expect(isSamePair([first, second], [first, { ...second, address: "delta:1" }])).toBe(false);
    expect(isSamePair([first, second], null)).toBe(false);
  });
});

describe("the events of an identity", () => {
  const one = { bootId: "b".repeat(20), fingerprint: "", address: "10.0.0.1:45123", atMs: 0 };
  const other = { bootId: "c", fingerprint: "f".repeat(20), address: "[::1]:45", atMs: 1 };

  it("should tell of two machines, with all that tells them apart", () => {
    expect(identityDuplicatedEvent("n1", [other, one], "replica:h1")).toEqual({
      ...{ type: "node.identity.duplicated", subject: "n1", actor: "replica:h1", reason: "DUPLICATE_IDENTITY" },
      message: "machine ffffffffffff boot c at [::1] and machine unknown boot bbbbbbbbbbbb at 10.0.0.1 alternate",
      before: null,
      after: {
        machines: [
          { fingerprint: "f".repeat(20), bootId: "c", address: "[::1]:45" },
          { fingerprint: "", bootId: "b".repeat(20), address: "10.0.0.1:45123" },
        ],
      },
    });
  });

  it("should tell when one is left", () => {
    expect(identityClearedEvent("n1", "replica:h1")).toEqual({
      ...{ type: "node.identity.cleared", subject: "n1", actor: "replica:h1", reason: "ONE_MACHINE_LEFT" },
      ...{ message: "one machine alone for 10 minutes", before: null, after: null },
    });
  });

  it("should know the last two machines, and none of one alone", () => {
    expect(latestPair([])).toBeNull();
    expect(latestPair([one])).toBeNull();
    expect(latestPair([other, one, other])).toEqual([one, other]);
  });

  it("should tell machines of one boot id apart", () => {
    const cloned = { ...other, fingerprint: "g" };
    const sightings = [other, cloned, other, cloned].map((it, index) => ({ ...it, atMs: index }));
    expect(findDuplicate(sightings, 4)).toEqual(sightings.slice(2));
    const three = [other, cloned, { ...other, fingerprint: "h" }, { ...other, fingerprint: "i" }];
    expect(findDuplicate(three, 4)).toBeNull();
  });

  it("should be over with nothing seen", () => {
    expect(isDuplicateOver([], 0)).toBe(true);
  });
});
