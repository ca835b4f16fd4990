import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { LeaseObserver } from "./lease-observer.ts";

const EXPIRY_MS = 10_000;
const MAX_READ_GAP_MS = 3000;

function observer() {
  return new LeaseObserver({ expiryMs: EXPIRY_MS, maxReadGapMs: MAX_READ_GAP_MS });
}

/** Read the same unchanged rows every 2 s. */
function readStill(leases: LeaseObserver, fromMs: number, toMs: number): string[] {
  const reported: string[] = [];
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += 2000) {
    reported.push(...leases.observe([{ id: "h1", counter: 7 }], nowMs, true));
  }
  return reported;
}

describe("LeaseObserver.observe()", () => {
  it.each([
    [9999, []],
    [10_000, ["h1"]],
    [10_001, ["h1"]],
  ])("should report a counter that stood still for %d ms: %j", (nowMs, expected) => {
    const leases = observer();
    readStill(leases, 0, 8000);

    expect(leases.observe([{ id: "h1", counter: 7 }], nowMs, true)).toEqual(expected);
  });

  it("should count from the read that first saw the counter", () => {
    const leases = observer();
    leases.observe([{ id: "h1", counter: 6 }], 0, true);

    expect(readStill(leases, 2000, 10_000)).toEqual([]);
    expect(readStill(leases, 12_000, 12_000)).toEqual(["h1"]);
  });

  it.each([
    ["up", 8n, 9n],
    ["down", 8n, 7n],
    ["to a text", "8", "9"],
  ])("should take any move for life: %s", (_, before, after) => {
    const leases = observer();
    for (let nowMs = 0; nowMs <= 8000; nowMs += 2000) {
      leases.observe([{ id: "h1", counter: before }], nowMs, true);
    }

    expect(leases.observe([{ id: "h1", counter: after }], 10_000, true)).toEqual([]);
    expect(leases.observe([{ id: "h1", counter: after }], 12_000, true)).toEqual([]);
  });

  it("should start again after a gap in its reads", () => {
    const leases = observer();
    readStill(leases, 0, 8000);

    expect(readStill(leases, 11_001, 19_001)).toEqual([]);
    expect(readStill(leases, 21_001, 21_001)).toEqual(["h1"]);
  });

  it("should not take the longest allowed interval for a gap", () => {
    const leases = observer();
    readStill(leases, 0, 8000);

    expect(readStill(leases, 11_000, 11_000)).toEqual(["h1"]);
  });

  it("should start again after a read without its own lease", () => {
    const leases = observer();
    readStill(leases, 0, 8000);

    expect(leases.observe([{ id: "h1", counter: 7 }], 10_000, false)).toEqual([]);
    expect(readStill(leases, 12_000, 20_000)).toEqual([]);
    expect(readStill(leases, 22_000, 22_000)).toEqual(["h1"]);
  });

  it("should forget a lease that is gone, and take one that returns for new", () => {
    const leases = observer();
    readStill(leases, 0, 6000);
    leases.observe([], 8000, true);

    expect(readStill(leases, 10_000, 18_000)).toEqual([]);
  });

  it("should report with each read until the row is gone", () => {
    const leases = observer();

    expect(readStill(leases, 0, 14_000)).toEqual(["h1", "h1", "h1"]);
    expect(leases.observe([], 16_000, true)).toEqual([]);
  });
});

interface Read {
  readonly atMs: number;
  readonly holdingOwn: boolean;
  readonly counters: ReadonlyMap<string, number>;
}

/**
 * Apply the definition to the whole history, from the last read backwards. A lease has expired if its counter did not
 * change for long enough before the last read.
 */
function isExpired(history: readonly Read[], id: string): boolean {
  const last = history.at(-1);
  if (last === undefined || !last.holdingOwn || !last.counters.has(id)) return false;
  let sinceMs = last.atMs;
  for (const { atMs, holdingOwn, counters } of history.toReversed().slice(1)) {
    if (!holdingOwn || sinceMs - atMs > MAX_READ_GAP_MS) break;
    if (counters.get(id) !== last.counters.get(id)) break;
    sinceMs = atMs;
  }
  return last.atMs - sinceMs >= EXPIRY_MS;
}

describe("LeaseObserver compared with its definition", () => {
  it("should report exactly the leases that stood still over gapless reads while it held its own", () => {
    const anyRead = fc.record({
      afterMs: fc.oneof(
        { weight: 12, arbitrary: fc.integer({ min: 0, max: 3000 }) },
        { weight: 1, arbitrary: fc.integer({ min: 2990, max: 20_000 }) },
      ),
      holdingOwn: fc.oneof({ weight: 20, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
      moves: fc.subarray(["h1", "h2", "h3"]),
      absent: fc.oneof(
        { weight: 8, arbitrary: fc.constant<string[]>([]) },
        { weight: 1, arbitrary: fc.subarray(["h1", "h2", "h3"]) },
      ),
      stuck: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(anyRead, { maxLength: 80 }), (reads) => {
        const leases = observer();
        const counters = new Map([
          ["h1", 0],
          ["h2", 0],
          ["h3", 0],
        ]);
        const history: Read[] = [];
        let atMs = 0;
        for (const { afterMs, holdingOwn, moves, absent, stuck } of reads) {
          atMs += afterMs;
          for (const id of stuck ? [] : moves) counters.set(id, (counters.get(id) ?? 0) + 1);
          const present = [...counters].filter(([id]) => !absent.includes(id));
          history.push({ atMs, holdingOwn, counters: new Map(present) });
          const rows = present.map(([id, counter]) => ({ id, counter }));
          const expected = ["h1", "h2", "h3"].filter((id) => isExpired(history, id));
          expect(leases.observe(rows, atMs, holdingOwn)).toEqual(expected);
        }
      }),
      { numRuns: 500 },
    );
  });
});
