import { describe, expect, it } from "@jest/globals";
import { connectionsCheck, leaseCheck } from "./ready-checks.ts";

describe("leaseCheck()", () => {
  it.each([
    [true, 4_999, { ok: true, message: "held" }],
    [
      true,
      5_000,
      { ok: true, degraded: true, message: expect.stringMatching(/^held, renewed 5\.0 s ago: .* commits/) },
    ],
    [false, 12_000, { ok: false, message: "no proof that the lease is still valid, renewed 12.0 s ago" }],
  ])("should say how late the renewal is: held %p, %d ms", (held, agoMs, expected) => {
    expect(leaseCheck({ held, renewedAtMs: 1_000 }, 1_000 + agoMs)).toEqual(expected);
  });

  it("should not be ready before it holds its lease", () => {
    expect(leaseCheck({ held: false, renewedAtMs: null }, 9_000)).toEqual({
      ok: false,
      message: "no proof that the lease is still valid",
    });
  });
});

describe("connectionsCheck()", () => {
  const pool = { lane: "calls", size: 16, inUse: 3, idle: 1, waiting: 0, waitingMs: 0, statementMs: 0 } as const;
  const turnedAway = { full: 0, late: 0 };

  it("should report connections in use if nothing waits for long", () => {
    const check = connectionsCheck([{ ...pool, turnedAway, waiting: 4, waitingMs: 999, statementMs: 4_999 }]);
    expect(check).toEqual({ ok: true, message: "calls: 3 of 16 in use" });
  });

  it.each([
    [{ waiting: 7, waitingMs: 1_000 }, "calls: 3 of 16 in use, 7 calls waiting, recently for up to 1.0 s"],
    [{ statementMs: 5_000 }, "calls: 3 of 16 in use, a statement has been running for 5.0 s"],
  ])("should name long waits, and stay ready: %j", (waits, message) => {
    const check = connectionsCheck([{ ...pool, turnedAway, ...waits }]);
    expect(check).toEqual({ ok: true, degraded: true, message });
  });
});
