import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import type { Farewell } from "../replica/farewell.ts";
import { liveReplicas } from "../testing/live-node.ts";
import { drain } from "./drain.ts";
import { Reconnects } from "./reconnects.ts";

function reconnectsOf(instances: readonly string[], unhealthyAfterMs = 60_000): Reconnects {
  const otherEndpoints = instances.filter((it) => it !== "own").map((it) => `${it}:1`);
  const peers = { replicas: liveReplicas(...instances), otherEndpoints };
  return new Reconnects({ instance: "own", peers, hellosPerSecond: 100, unhealthyAfterMs });
}

/** Create a replica that shuts down with `sessions` sessions, of which `stay` do not leave when asked. */
function setUp(facts: { readonly sessions: number; readonly stay: number; readonly replicas: readonly string[] }) {
  const clock = new ManualClock();
  const done: string[] = [];
  const farewells: Farewell[] = [];
  const ended = drain({
    replica: { nodes: { sessions: facts.sessions }, drain: () => done.push("drain") },
    peers: {
      refresh: async () => {
        done.push("refresh");
      },
    },
    reconnects: reconnectsOf(facts.replicas),
    mover: {
      leaving: () => facts.stay,
      askAll: (farewell: () => Farewell) => {
        done.push("ask");
        farewells.push(farewell());
        return facts.sessions;
      },
    },
    clock,
    log: silentLogger,
    random: () => 0.5,
    withdraw: async () => {
      done.push("withdraw");
    },
  }).then(() => done.push("ended"));
  return { clock, done, farewells, ended };
}

describe("drain()", () => {
  it("should attract no more agents, and ask all current ones to move to other replicas", async () => {
    const { clock, done, farewells, ended } = setUp({ sessions: 50, stay: 0, replicas: ["own", "a", "b"] });
    await clock.pass(400);
    await ended;
    expect(done).toEqual(["drain", "withdraw", "refresh", "ask", "ended"]);
    expect(farewells).toMatchObject([
      { reason: "SERVER_SHUTTING_DOWN", action: "MOVE", endpoints: ["b:1", "a:1"], retryAfterMs: 500 },
    ]);
  });

  it("should wait for agents that do not leave at most for the window and the time to move", async () => {
    const { clock, done, ended } = setUp({ sessions: 50, stay: 1, replicas: ["own", "a"] });
    await clock.pass(4_200);
    expect(done).not.toContain("ended");
    await clock.pass(200);
    await ended;
    const crowd = setUp({ sessions: 100_000, stay: 1, replicas: ["own", "a"] });
    await crowd.clock.pass(9_200);
    expect(crowd.done).not.toContain("ended");
    await crowd.clock.pass(200);
    await crowd.ended;
  });

  it("should not wait without agents or without another replica", async () => {
    const empty = setUp({ sessions: 0, stay: 0, replicas: ["own", "a"] });
    await empty.ended;
    expect(empty.done).toEqual(["drain", "ended"]);
    const alone = setUp({ sessions: 50, stay: 50, replicas: ["own"] });
    await alone.clock.pass(400);
    await alone.ended;
    expect(alone.done).toEqual(["drain", "withdraw", "refresh", "ended"]);
  });
});

describe("Reconnects", () => {
  it("should spread agents over the time that the others need, at most half of the time that they can be away", () => {
    const alone = reconnectsOf(["own"]);
    const three = reconnectsOf(["own", "a", "b", "c"]);
    expect([alone.others, three.others]).toEqual([0, 3]);
    expect([alone.windowMs(1_200), three.windowMs(1_200)]).toEqual([12_000, 4_000]);
    expect([three.windowMs(1), three.windowMs(1_000_000)]).toEqual([1_000, 30_000]);
    expect(three.all).toEqual(["own:1", "a:1", "b:1", "c:1"]);
    expect(three.endpoints).toEqual(["a:1", "b:1", "c:1"]);
  });
});
