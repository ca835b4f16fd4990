import { describe, expect, it } from "@jest/globals";
import type { SessionEnd } from "../stream/session-end.ts";
import {
  connected,
  due,
  ended,
  loaded,
  notOpened,
  notRegistered,
  opened,
  Run,
  refused,
  registered,
  UNREACHABLE,
} from "../testing/agent-run.ts";
import { dueAtMs } from "./agent-state.ts";

describe("stepAgent(): a round over the endpoints", () => {
  it("should ask the registry after five consecutive endpoints accept no agents, and start with new endpoints", () => {
    const run = new Run(loaded(true, ["a", "b"]), opened(), ended({ kind: "silent" }));
    for (const _ of [1, 2]) {
      expect(run.wait()).toEqual(["open b"]);
      expect(run.step(notOpened(UNREACHABLE))).toEqual(["open a"]);
      expect(run.step(notOpened(refused("SERVER_SHUTTING_DOWN")))).toEqual(["log retry"]);
    }
    run.wait();
    run.nowMs = 10_000;
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
    expect(run.step({ ...registered, endpoints: ["a", "b", "y", "z"] })).toEqual(["open y"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open z"]);
    // After asking the registry, the agent continues with the rest of the round.
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open a"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["log retry"]);
  });

  it("should not ask before a time that differs from agent to agent", () => {
    const run = new Run(loaded(true), opened());
    run.step(ended({ kind: "silent" }), 0.9);
    const asked = () => {
      run.step(due);
      for (;;) {
        const [effect] = run.step(notOpened(UNREACHABLE), 0);
        if (effect === "register") return true;
        if (effect === "log retry") return false;
      }
    };
    run.nowMs = 13_499;
    expect([asked(), asked()]).toEqual([false, false]);
    run.nowMs = 13_500;
    expect(asked()).toBe(true);
  });

  it.each([
    ["does not answer", notRegistered({ kind: "unreachable", message: "the registry" })],
    ["refuses", notRegistered(refused("OVERLOADED"))],
    ["names nothing new", { ...registered, endpoints: ["a", "b"] } as const],
    ["names nothing", { ...registered, endpoints: [] } as const],
  ])("should continue the round if the registry %s, and not ask it for a while", (_, answer) => {
    const run = new Run(loaded(true, ["a", "b", "c", "d", "e", "f", "g"]), opened());
    run.step(ended({ kind: "silent" }), 0);
    expect(run.wait()).toEqual(["open b"]);
    for (const endpoint of ["c", "d", "e", "f"]) expect(run.step(notOpened(UNREACHABLE))).toEqual([`open ${endpoint}`]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
    expect(run.step(answer)).toEqual(["open g"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open a"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["log retry"]);
    const fromMs = run.nowMs;
    for (run.wait(); run.step(notOpened(UNREACHABLE))[0] !== "register"; ) {
      if (run.state.stage.kind === "waiting") run.wait();
    }
    expect(run.nowMs).toBeGreaterThanOrEqual(fromMs + 17_500);
  });

  it.each([
    ["waits for a person", refused("NODE_BANNED"), ["log retry"]],
    ["is that the node was deleted", refused("NODE_DELETED"), ["log idle", "forget"]],
  ])("should end the round if the registry's answer %s", (_, end, effects) => {
    const run = new Run(loaded(true, ["a"]));
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
    expect(run.step(notRegistered(end))).toEqual(effects);
  });

  it.each<[string, SessionEnd]>([
    ["does not answer", UNREACHABLE],
    ["is ending sooner", { ...refused("SERVER_SHUTTING_DOWN"), retryAfterMs: 300 } as SessionEnd],
    ["is busy", refused("OVERLOADED")],
    ["never answers the Hello", { kind: "silent" }],
  ])("should wait as long as a replica that shuts down has said, although the next one %s", (_, last) => {
    const run = connected();
    run.step(ended({ kind: "silent" }));
    run.wait();
    run.step(notOpened({ ...refused("SERVER_SHUTTING_DOWN"), retryAfterMs: 6_000 } as SessionEnd));
    run.step(notOpened(UNREACHABLE));
    expect(run.step(notOpened(last))).toEqual(["log retry"]);
    expect(dueAtMs(run.state)).toBeGreaterThanOrEqual(run.nowMs + 6_000);
  });

  it("should ask after each round until it has connected, and wait for the requested time", () => {
    const run = new Run(loaded(true, ["a"]));
    for (const answer of [notRegistered(UNREACHABLE), { ...registered, endpoints: ["a"] }]) {
      expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
      expect(run.step(answer)).toEqual(["log retry"]);
      expect(run.wait()).toEqual(["open a"]);
    }
    run.step(notOpened(UNREACHABLE));
    run.step(notRegistered({ ...refused("OVERLOADED"), retryAfterMs: 60_000 } as SessionEnd));
    expect(run.wait()).toEqual(["open a"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["log retry"]);
  });

  it("should ask the registry for endpoints when it knows none", () => {
    const run = new Run();
    expect(run.step(loaded(true, []))).toEqual(["register"]);
  });

  it("should continue with the next endpoint if a replica is shutting down", () => {
    const run = connected();
    run.step(ended(refused("SERVER_SHUTTING_DOWN")));
    expect(run.wait()).toEqual(["open b"]);
    expect(run.step(notOpened(refused("SERVER_SHUTTING_DOWN")))).toEqual(["open c"]);
    expect(run.step(notOpened(refused("OVERLOADED")))).toEqual(["log retry"]);
  });
});
