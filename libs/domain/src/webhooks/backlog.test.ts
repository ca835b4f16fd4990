import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  afterCompaction,
  afterFailure,
  afterRecovery,
  type BlockedSubject,
  dueSubjects,
  nextDueAtMs,
  overdueSubject,
} from "./backlog.ts";

const TERMS = { baseMs: 1_000, maxMs: 60_000, pauseAfterMs: 100_000 };
const FAILURE = { subject: "n1", revision: 7n, error: "it said 500", retryAfterMs: 0 };

function blocked(changes: Partial<BlockedSubject> = {}): BlockedSubject {
  return {
    subject: "n1",
    fromRevision: 7n,
    sinceMs: 0,
    failures: 1,
    error: "",
    nextAtMs: 0,
    notBeforeMs: 0,
    ...changes,
  };
}

describe("afterFailure()", () => {
  it.each([
    [1, 0, 500],
    [1, 0.999_999, 1_000],
    [2, 0.999_999, 2_000],
    [4, 0, 4_000],
    [10, 0.999_999, 60_000],
    [1_000_000, 0, 30_000],
  ])("should wait half to the whole of a limit that doubles: failure %d, chance %d", (failures, random01, pauseMs) => {
    const before = failures === 1 ? null : blocked({ failures: failures - 1 });
    const after = afterFailure(before, FAILURE, { wallMs: 5, nowMs: 10 }, TERMS, random01);
    expect(after).toMatchObject({ failures, nextAtMs: 10 + pauseMs, error: "it said 500" });
  });

  it("should wait no shorter than the receiver asks", () => {
    const after = afterFailure(null, { ...FAILURE, retryAfterMs: 90_000 }, { wallMs: 0, nowMs: 0 }, TERMS, 0);
    expect(after.nextAtMs).toBe(90_000);
    // Check that the pause also applies if the receiver accepts another event in the meantime.
    expect(afterRecovery([after], 10)).toEqual([after]);
    const [soon] = afterRecovery([{ ...after, notBeforeMs: 20 }], 10);
    expect(soon?.nextAtMs).toBe(20);
  });

  it("should keep since when it fails, and begin again with another event", () => {
    const at = { wallMs: 500, nowMs: 0 };
    expect(afterFailure(blocked(), FAILURE, at, TERMS, 0)).toMatchObject({ sinceMs: 0, failures: 2 });
    const other = afterFailure(blocked(), { ...FAILURE, revision: 8n }, at, TERMS, 0);
    expect(other).toMatchObject({ sinceMs: 500, failures: 1, fromRevision: 8n });
  });
});

describe("overdueSubject()", () => {
  it("should be the oldest, from its time on", () => {
    const both = [blocked({ subject: "new", sinceMs: 50 }), blocked({ subject: "old", sinceMs: 10 })];
    expect(overdueSubject(both, 100_009, TERMS)).toBeNull();
    expect(overdueSubject(both, 100_010, TERMS)?.subject).toBe("old");
    expect(overdueSubject([], 1e9, TERMS)).toBeNull();
    // No attempt has failed since an admin resumed the webhook.
    expect(overdueSubject([blocked({ failures: 0 })], 1e9, TERMS)).toBeNull();
  });
});

describe("dueSubjects()", () => {
  it("should be those whose time has come, the longest due first", () => {
    const all = [5, 20, 10, 30].map((nextAtMs) => blocked({ subject: `n${nextAtMs}`, nextAtMs }));
    expect(dueSubjects(all, 20).map(({ subject }) => subject)).toEqual(["n5", "n10", "n20"]);
    expect(nextDueAtMs(all)).toBe(5);
    expect(nextDueAtMs([])).toBeNull();
    expect(dueSubjects(afterRecovery(all, 7), 7)).toHaveLength(4);
  });
});

describe("afterCompaction()", () => {
  it("should pass over nothing that can still be read, and say all that cannot", () => {
    const revision = fc.bigInt({ min: 1n, max: 50n });
    fc.assert(
      fc.property(revision, fc.array(revision, { maxLength: 5 }), revision, (at, froms, compacted) => {
        const waiting = froms.map((fromRevision, index) => blocked({ subject: `n${index}`, fromRevision }));
        const after = afterCompaction({ revision: at, blocked: waiting }, compacted);
        const isBehind = at < compacted;
        const isLost = isBehind || froms.some((from) => from <= compacted);
        expect(after.lost !== null).toBe(isLost);
        expect(after.revision).toBe(isBehind ? compacted : at);
        for (const [index, one] of after.blocked.entries()) {
          const from = froms[index] ?? 0n;
          expect(one.fromRevision).toBe(from <= compacted ? compacted + 1n : from);
          if (after.lost !== null && from <= compacted) expect(after.lost.from <= from).toBe(true);
        }
        expect(after.lost?.through ?? compacted).toBe(compacted);
      }),
    );
  });
});
