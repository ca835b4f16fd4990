import { createContextValues } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { refuse } from "@rollcall/errors";
import { createMetrics } from "@rollcall/process";
import { type CountedResource, faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { TestCounts, type TestLimits } from "../../test/test-counts.ts";
import { callSlotKey, endingKey } from "../calls/call-context.ts";
import { LargeTurn } from "../calls/large-turn.ts";
import { Limiter } from "../calls/limiter.ts";
import type { MethodCaller } from "../calls/policy.ts";
import { CallAdmission } from "./call-admission.ts";
import { Turns } from "./turns.ts";
import { UnpackingQueue } from "./unpacking-queue.ts";

const LIMIT = 5;

/** Calls of one party, up to its limit. `claims` is the caller that each call's token identifies; null for no token. */
function callsOf(
  needs: MethodCaller,
  { isStream, claims, limits }: { isStream: boolean; claims: string | null; limits: TestLimits },
): CountedResource {
  const counts = new TestCounts(limits);
  const admission = new CallAdmission({ counts, metrics: createMetrics({ defaults: false }) });
  const reason = isStream && claims !== null ? "TOO_MANY_STREAMS" : "TOO_MANY_CALLS";
  const begin = (): Use => {
    const call = { needs, isStream, peer: "192.0.2.1:1", authorization: claims === null ? null : "Bearer x" };
    const slot = admission.enter(call);
    try {
      if (claims !== null) slot.claim(claims);
    } catch (error) {
      // Leave the slot if the claim is refused, as the server does.
      slot.leave();
      throw error;
    }
    return {
      endings: {
        leaving: () => slot.leave(),
        "leaving twice": () => {
          slot.leave();
          slot.leave();
        },
        "a caller that claims after it has left": () => {
          slot.leave();
          slot.claim("token:late");
        },
      },
    };
  };
  return { limit: LIMIT, reason, begin, held: () => counts.held.size };
}

describe("calls in progress", () => {
  it.each<[string, MethodCaller, boolean, string | null, TestLimits]>([
    ["calls of a caller", "viewer", false, "token:a", { caller: LIMIT }],
    ["streams of a caller", "viewer", true, "token:a", { streams: LIMIT }],
    ["calls of an address that carry no token", "viewer", false, null, { arriving: LIMIT }],
    ["calls of an address to open methods", "anyone", false, null, { anonymous: LIMIT }],
    ["streams of an address to open methods", "anyone", true, null, { anonymous: LIMIT }],
    ["calls of nodes of an address", "node", false, null, { node: LIMIT }],
    ["calls of replicas of an address", "replica", true, null, { replica: LIMIT }],
  ])("should be limited, and released when they end: %s", async (_, needs, isStream, claims, limits) => {
    expect(await faultsAtLimit(callsOf(needs, { isStream, claims, limits }))).toEqual([]);
  });
});

const LATE = refuse("OVERLOADED", "it waited");

/** Take a slot of a queue. Throws a refusal if none is free, instead of waiting. */
async function atOnce(enter: (signal: AbortSignal) => Promise<() => void>): Promise<() => void> {
  const waiting = new AbortController();
  const entered = enter(waiting.signal);
  const next = new Promise<void>((resolve) => setImmediate(resolve));
  await Promise.race([entered, next]);
  waiting.abort(LATE);
  return entered;
}

describe("slots that others wait for", () => {
  it("should be returned to the limiter however a call ends, and when a call gives up waiting", async () => {
    const limiter = new Limiter(LIMIT);
    const begin = async (): Promise<Use> => {
      const leave = await atOnce((signal) => limiter.enter(signal, "a"));
      const twice = () => {
        leave();
        leave();
      };
      return { endings: { leaving: leave, "leaving twice": twice } };
    };
    const held = () => limiter.waiting + (limiter.isFree ? 0 : 1);
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin, held })).toEqual([]);
  });

  it("should be returned to the queue of a party", async () => {
    const turns = new Turns();
    const begin = async (): Promise<Use> => {
      const wait = { mostMs: 60_000, late: () => LATE };
      const leave = await atOnce((signal) => turns.take("a", LIMIT, { ...wait, signal }));
      return { endings: { leaving: leave } };
    };
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin, held: () => turns.size })).toEqual([]);
  });

  it("should be returned by calls with large messages, whether or not their callers stay", async () => {
    const counts = new TestCounts({ large: LIMIT });
    const admission = new CallAdmission({ counts, metrics: createMetrics({ defaults: false }) });
    const call = { needs: "viewer", isStream: false, peer: "192.0.2.1:1", authorization: null } as const;
    const begin = async (): Promise<Use> => {
      const slot = admission.enter(call);
      const ending = new AbortController();
      const turn = new LargeTurn(createContextValues().set(callSlotKey, slot).set(endingKey, ending));
      const began = turn.begin();
      await Promise.race([began, new Promise<void>((resolve) => setImmediate(resolve))]);
      ending.abort(LATE);
      await began;
      return {
        endings: {
          "its end": () => turn.end(),
          "its end, twice": () => {
            turn.end();
            turn.end();
          },
          "its end after the caller has left": () => {
            slot.leave();
            turn.end();
          },
        },
      };
    };
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin })).toEqual([]);
  });

  it("should be returned by messages, whether or not they can be decompressed", async () => {
    // One message is decompressed, the others wait.
    const queue = new UnpackingQueue(LIMIT - 1);
    const begin = async (): Promise<Use> => {
      let finish: (error: Error | null) => void = () => {};
      const unpacked = new Promise<void>((resolve, reject) => {
        finish = (error) => (error === null ? resolve() : reject(error));
      });
      unpacked.catch(() => {});
      const added = queue.add(() => unpacked);
      // A refused message fails immediately; one that waits or is being decompressed does not.
      await Promise.race([added, new Promise((resolve) => setImmediate(resolve))]);
      added.catch(() => {});
      return { endings: { "its end": () => finish(null), "an error": () => finish(new Error("no gzip")) } };
    };
    expect(await faultsAtLimit({ limit: LIMIT, reason: "OVERLOADED", begin })).toEqual([]);
  });
});
