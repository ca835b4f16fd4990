import { describe, expect, it } from "@jest/globals";
import type { SessionEnd } from "../stream/session-end.ts";
import {
  asksAfterLoss,
  asksAfterNothingNew,
  asksForEndpoints,
  decideNextStep,
  isDecision,
  isOfEndpoint,
  isRejection,
} from "./next-step.ts";

const FIRST = {
  failures: 0,
  rejectedForMs: 0,
  backoffMaxMs: 20_000,
  random01: 0.5,
};

function refused(change: Partial<SessionEnd & { kind: "refused" }>): SessionEnd {
  return {
    kind: "refused",
    reason: undefined,
    message: "",
    retryAfterMs: undefined,
    action: undefined,
    ...change,
  };
}

describe("decideNextStep()", () => {
  it.each<[string, SessionEnd, object]>([
    ["a dead path", { kind: "silent" }, { delayMs: 0, mustRegister: false }],
    ["no server", { kind: "unreachable", message: "" }, { delayMs: 500, mustRegister: false }],
    ["an end without a reason", refused({}), { delayMs: 500, mustRegister: false }],
    ["an end with a time", refused({ retryAfterMs: 7_000 }), { delayMs: 7_500 }],
    ["an unknown node", refused({ reason: "NODE_NOT_REGISTERED" }), { mustRegister: true }],
    ["an order to register", refused({ action: "REGISTER" }), { mustRegister: true }],
    ["a rejection", refused({ reason: "NODE_REJECTED" }), { delayMs: 14_625, mustRegister: false }],
    ["a ban", refused({ reason: "NODE_BANNED" }), { delayMs: 14_625, mustRegister: false }],
    ["a rejection with a time", refused({ reason: "NODE_REJECTED", retryAfterMs: 10_000 }), { delayMs: 11_250 }],
    ["no join token", refused({ reason: "JOIN_TOKEN_REQUIRED" }), { delayMs: 135_000 }],
    ["a used join token", refused({ reason: "JOIN_TOKEN_USED_UP" }), { delayMs: 135_000 }],
    ["another key", refused({ reason: "NODE_KEY_MISMATCH" }), { delayMs: 135_000 }],
    ["another case", refused({ reason: "NODE_ID_CONFUSABLE" }), { delayMs: 135_000 }],
    ["a second process", refused({ reason: "SESSION_SUPERSEDED" }), { delayMs: 33_750 }],
    [
      "a second process with a time",
      refused({ reason: "SESSION_SUPERSEDED", retryAfterMs: 60_000 }),
      { delayMs: 67_500 },
    ],
    ["a reason of a newer server", refused({ reason: "BRAND_NEW" }), { delayMs: 500 }],
  ])("should decide what to do after %s", (_, end, step) => {
    expect(decideNextStep(end, FIRST)).toMatchObject({ kind: "retry", ...step });
  });

  it.each([
    [0, 10_000, 19_999],
    [600_000, 10_000, 19_999],
    [1_800_000, 30_000, 59_999],
    [86_400_000, 60_000, 119_999],
  ])(
    "should be back within 20 s for ten minutes after a rejection, then more slowly: %d ms",
    (rejectedForMs, leastMs, mostMs) => {
      const end = refused({ reason: "NODE_REJECTED" });
      const delayOf = (random01: number) => decideNextStep(end, { ...FIRST, rejectedForMs, random01 });
      expect(delayOf(0)).toMatchObject({ delayMs: leastMs });
      expect(delayOf(0.999999)).toMatchObject({ delayMs: mostMs });
    },
  );

  it.each([
    [undefined, 30_000],
    [0, 1_000],
    [2_000, 2_000],
    [90_000, 90_000],
  ])(
    "should leave a session to another process for as long as the server says, 1 s at least, or for 30 s: %s",
    (retryAfterMs, leastMs) => {
      const end = refused({ reason: "SESSION_SUPERSEDED", retryAfterMs });
      const step = decideNextStep(end, { ...FIRST, random01: 0 });
      expect(step).toMatchObject({ kind: "retry", delayMs: leastMs });
    },
  );

  it.each([
    ["NODE_DELETED", refused({ reason: "NODE_DELETED" })],
    ["an order to stop", refused({ action: "STOP" })],
  ])("should stay idle after %s", (_, end) => {
    expect(decideNextStep(end, FIRST)).toEqual({ kind: "idle" });
  });

  it.each([
    [0, 999],
    [1, 1_999],
    [4, 15_999],
    [5, 19_999],
    [500, 19_999],
  ])("should double its backoff up to the limit: %d failures", (failures, delayMs) => {
    const end: SessionEnd = { kind: "unreachable", message: "" };
    expect(decideNextStep(end, { ...FIRST, failures, random01: 0.99999 })).toMatchObject({
      delayMs,
    });
  });
});

describe("asksForEndpoints()", () => {
  it.each([
    [true, 4, true, false],
    [true, 5, false, true],
    [true, 6, true, true],
    [false, 1, false, false],
    [false, 1, true, true],
    [false, 5, false, true],
    // An agent that knows no endpoint.
    [false, 0, true, true],
  ])(
    "should answer for hasConnected %j, unreachable %d, isRoundOver %j: %j",
    (hasConnected, unreachable, over, asks) => {
      expect(asksForEndpoints({ hasConnected, unreachable }, over)).toBe(asks);
    },
  );
});

describe("asksAfterLoss(), asksAfterNothingNew()", () => {
  it.each([
    [0, 1_000, 11_000],
    [0.5, 8_500, 18_500],
    [0.9999, 15_998, 25_998],
  ])("should spread the agents of a fleet: %d", (random01, afterLoss, afterNothingNew) => {
    expect(asksAfterLoss({ nowMs: 1_000, random01 })).toBe(afterLoss);
    expect(asksAfterNothingNew({ hasConnected: true }, { nowMs: 1_000, random01 })).toBe(afterNothingNew);
    expect(asksAfterNothingNew({ hasConnected: false }, { nowMs: 1_000, random01 })).toBe(1_000);
  });
});

describe("isOfEndpoint()", () => {
  it.each([
    [{ kind: "unreachable", message: "" } as const, true],
    [refused({ reason: "SERVER_SHUTTING_DOWN" }), true],
    [refused({ reason: "OVERLOADED" }), false],
    [refused({}), false],
    [{ kind: "silent" } as const, false],
  ])("should recognize ends that say nothing about other endpoints", (end, isOf) => {
    expect(isOfEndpoint(end)).toBe(isOf);
  });
});

describe("isDecision()", () => {
  it.each([
    [refused({ reason: "NODE_REJECTED" }), true],
    [refused({ reason: "INVALID_LABEL" }), true],
    [refused({ reason: "OVERLOADED" }), false],
    [refused({}), false],
  ])("should recognize refusals that need a person", (end, decision) => {
    expect(isDecision(end)).toBe(decision);
  });
});

describe("isRejection()", () => {
  it.each([
    [refused({ reason: "NODE_REJECTED" }), true],
    [refused({ reason: "NODE_BANNED" }), true],
    [refused({ reason: "JOIN_TOKEN_REQUIRED" }), false],
    [refused({}), false],
    [{ kind: "silent" } as const, false],
  ])("should recognize an operator's rejection", (end, rejection) => {
    expect(isRejection(end)).toBe(rejection);
  });
});
