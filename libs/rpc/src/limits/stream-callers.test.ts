import { afterEach, describe, expect, it } from "@jest/globals";
import { reasonOf, refuse } from "@rollcall/errors";
import type { Authenticator, IdentifiedCaller } from "@rollcall/identity";
import { eventually, ManualClock } from "@rollcall/testkit";
import { StreamCallers } from "./stream-callers.ts";

const VIEWER: IdentifiedCaller = { kind: "token", id: "t", role: "viewer" };

let leaving: (() => void)[] = [];
afterEach(() => {
  for (const leave of leaving) leave();
  leaving = [];
});

function rig(caller: IdentifiedCaller = VIEWER) {
  const state = {
    asked: 0,
    answer: (async () => caller) as Authenticator,
  };
  const clock = new ManualClock();
  const authenticate: Authenticator = (bearer) => {
    state.asked += 1;
    return state.answer(bearer);
  };
  const callers = new StreamCallers({ authenticate, clock, everyMs: 1 });
  const open = (needs: "viewer" | "operator" = "viewer", authorization = "Bearer x") => {
    const ending = new AbortController();
    leaving.push(callers.join({ authorization, caller, needs, ending }));
    return ending.signal;
  };
  const rounds = async (count: number) => {
    const before = state.asked;
    await eventually(() => expect(state.asked).toBeGreaterThanOrEqual(before + count));
  };
  return { state, clock, callers, open, rounds };
}

describe("StreamCallers", () => {
  it.each(["TOKEN_REVOKED", "TOKEN_EXPIRED", "TOKEN_INVALID", "ROLE_TOO_LOW"] as const)(
    "should end streams with %s",
    async (reason) => {
      const { state, open } = rig();
      const streams = [open(), open()];
      state.answer = async () => {
        throw refuse(reason, "no more");
      };
      for (const stream of streams) {
        await eventually(() => expect(stream.aborted).toBe(true));
        expect(reasonOf(stream.reason)).toBe(reason);
      }
    },
  );

  it("should end the streams of a deleted token, and of a lowered role", async () => {
    const { state, open, rounds } = rig({ ...VIEWER, role: "operator" });
    const [reader, decider] = [open(), open("operator")];
    state.answer = async () => VIEWER;
    await eventually(() => expect(reasonOf(decider.reason)).toBe("ROLE_TOO_LOW"));
    await rounds(4);
    expect(reader.aborted).toBe(false);
    state.answer = async () => null;
    await eventually(() => expect(reasonOf(reader.reason)).toBe("TOKEN_INVALID"));
  });

  it("should keep streams while the store is unavailable, until the token expires", async () => {
    const { state, clock, open, rounds } = rig({ ...VIEWER, expiresAtMs: 1_700_000_060_000 });
    const stream = open();
    state.answer = async () => {
      throw new Error("the database is away");
    };
    await rounds(3);
    expect(stream.aborted).toBe(false);
    clock.advance(60_000);
    await eventually(() => expect(reasonOf(stream.reason)).toBe("TOKEN_EXPIRED"));
  });

  it("should check once for all streams of a token, and not without streams", async () => {
    const { state, open, rounds } = rig();
    for (let stream = 0; stream < 100; stream += 1) open();
    await rounds(1);
    expect(state.asked).toBeLessThan(100);
    for (const leave of leaving) leave();
    await Promise.resolve();
    const { asked } = state;
    open();
    await eventually(() => expect(state.asked).toBeGreaterThan(asked));
  });
});
