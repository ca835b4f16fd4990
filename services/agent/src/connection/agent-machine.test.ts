import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  connected,
  due,
  ended,
  loaded,
  moveAsked,
  notOpened,
  notRegistered,
  opened,
  Run,
  refused,
  registered,
  UNREACHABLE,
} from "../testing/agent-run.ts";
import { GOODBYE_LIMIT_MS } from "./agent-machine.ts";
import { type AgentEvent, beginAgent, dueAtMs } from "./agent-state.ts";

describe("stepAgent()", () => {
  it("should register first if it never did, then open a stream", () => {
    const run = new Run();
    expect(run.step(loaded(false, []))).toEqual(["register"]);
    expect(run.step(registered)).toEqual(["open a"]);
    expect(run.step(opened(["b"], 4n))).toEqual(["hold"]);
    expect(run.state).toMatchObject({ held: { endpoint: "a", epoch: 4n }, membership: "APPROVED", endpoints: ["b"] });
  });

  it("should skip a remembered registration, and spread over the endpoints", () => {
    const run = new Run();
    run.state = beginAgent(1 / 1_024);
    expect(run.step(loaded(true))).toEqual(["open b"]);
  });

  it("should try every endpoint before waiting, then start with the next one", () => {
    const run = new Run(loaded(true));
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open b"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open c"]);
    // The agent was just started, and its endpoints may be outdated.
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
    expect(run.step(notRegistered(refused("OVERLOADED")))).toEqual(["log retry"]);
    expect(run.state).toMatchObject({ stage: { kind: "waiting" }, unreachable: 3, failures: 1 });
    expect(run.wait()).toEqual(["open a"]);
    expect(run.step(notOpened(refused("OVERLOADED")))).toEqual(["log retry"]);
    expect(run.state.unreachable).toBe(0);
    expect(run.wait()).toEqual(["open b"]);
  });

  it("should not open a stream before a registration that the server requests", () => {
    const run = connected();
    expect(run.step(ended(refused("NODE_NOT_REGISTERED")))).toEqual(["log retry"]);
    expect(run.wait()).toEqual(["register"]);
    expect(run.step(notRegistered(UNREACHABLE))).toEqual(["log retry"]);
    expect(run.wait()).toEqual(["register"]);
    expect(run.step(registered)).toEqual(["open b"]);
  });

  it("should try the node's other key once, at each endpoint", () => {
    const run = new Run(loaded(true));
    const isRefused = refused("PROOF_INVALID");
    expect(run.step(notOpened(isRefused, true))).toEqual(["open a"]);
    expect(run.step(notOpened(isRefused, true))).toEqual(["log retry"]);
  });

  it("should forget and stay idle when the node was deleted", () => {
    const run = connected();
    expect(run.step(ended(refused("NODE_DELETED")))).toEqual(["log idle", "forget"]);
    expect(dueAtMs(run.state)).toBeNull();
    expect(run.step({ kind: "close", reason: "stopped" })).toEqual(["give-up"]);
    expect(run.state.stage.kind).toBe("closed");
  });

  it.each([
    ["where the server says", ["z"], "open z"],
    ["elsewhere", [], "open b"],
  ])("should move %s, and close the current stream only then", (_, named, open) => {
    const run = connected();
    expect(run.step(moveAsked(named))).toEqual([]);
    expect(run.state.held?.endpoint).toBe("a");
    expect(run.wait()).toEqual([open]);
    expect(run.state.stage.kind).toBe("connected");
    expect(run.step(opened([], 2n))).toEqual(["hold"]);
    expect(run.state).toMatchObject({ held: { epoch: 2n }, stage: { kind: "connected", move: null } });
  });

  it("should move after the server's delay and up to a second of jitter", () => {
    for (const [random01, atMs] of [
      [0, 100],
      [0.5, 600],
    ] as const) {
      const run = connected();
      run.step(moveAsked(), random01);
      expect(dueAtMs(run.state)).toBe(atMs);
    }
  });

  it("should stay at its replica if it requests the new stream itself", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.wait()).toEqual(["open a"]);
  });

  it("should start a move at the server's endpoints, and continue with all known ones", () => {
    const run = connected();
    run.step(moveAsked(["y", "c"]));
    expect(run.wait()).toEqual(["open y"]);
    for (const endpoint of ["c", "b"]) expect(run.step(notOpened(UNREACHABLE))).toEqual([`open ${endpoint}`]);
    expect(run.step(notOpened(refused("OVERLOADED")))).toEqual([]);
    expect(run.state.held?.endpoint).toBe("a");
    expect(run.wait()).toEqual(["open y"]);
    for (const endpoint of ["c", "b"]) expect(run.step(notOpened(UNREACHABLE))).toEqual([`open ${endpoint}`]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual([]);
  });

  it("should try its current address, which may stand for other replicas, if it knows no other", () => {
    const run = new Run(loaded(true, ["a"]), opened());
    run.step(moveAsked(["z"]));
    expect(run.wait()).toEqual(["open z"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual([]);
    expect(run.wait()).toEqual(["open z"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open a"]);
    expect(run.step(opened([], 2n))).toEqual(["hold"]);
    run.step(moveAsked(["a"]));
    expect(run.wait()).toEqual(["open a"]);
  });

  it("should reconnect to where it was sent if its stream ends before the move, until a Welcome names others", () => {
    const run = connected();
    run.step(moveAsked(["y", "z"]));
    run.step(ended(refused("SERVER_SHUTTING_DOWN")));
    expect(run.wait()).toEqual(["open y"]);
    run.step(opened(["a", "b"]));
    run.step(ended(refused("SERVER_SHUTTING_DOWN")));
    expect(run.wait()).not.toEqual(["open y"]);
  });

  it("should replace a waiting move by a newer request to move", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.step(moveAsked(["y"]))).toEqual([]);
    expect(run.wait()).toEqual(["open y"]);
  });

  it("should follow a request to move once the current attempt has failed", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.wait()).toEqual(["open a"]);
    expect(run.step(moveAsked(["y"]))).toEqual([]);
    expect(run.step(notOpened(refused("SERVER_SHUTTING_DOWN")))).toEqual([]);
    expect(run.wait()).toEqual(["open y"]);
  });

  it("should keep opening the next stream if the current one ends", () => {
    const run = connected();
    run.step(moveAsked(["z"]));
    run.wait();
    // The Hello of the move took over the session, so no other process has this identity.
    expect(run.step(ended(refused("SESSION_SUPERSEDED")))).toEqual([]);
    for (const endpoint of ["b", "c"]) expect(run.step(notOpened(UNREACHABLE))).toEqual([`open ${endpoint}`]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["log retry"]);
    expect(run.state).toMatchObject({ held: null, stage: { kind: "waiting", untilMs: run.nowMs } });
  });

  it("should wait long before it takes a session back from another process", () => {
    const run = connected();
    run.step(ended(refused("SESSION_SUPERSEDED")));
    expect(dueAtMs(run.state)).toBeGreaterThanOrEqual(30_000);
  });

  it.each(["NODE_REJECTED", "NODE_BANNED"])(
    "should close the current stream too if a move is refused with %s",
    (reason) => {
      const run = connected();
      run.step(moveAsked());
      run.wait();
      expect(run.step(notOpened(refused(reason)))).toEqual(["drop", "log retry"]);
      expect(run.state.held).toBeNull();
    },
  );

  it("should send its goodbye on the current stream, whatever is being opened", () => {
    const run = connected();
    run.step(moveAsked());
    run.wait();
    expect(run.step({ kind: "close", reason: "stopped" })).toEqual(["give-up", "goodbye: stopped"]);
    expect(run.step(opened())).toEqual([]);
    expect(run.step(ended({ kind: "left" }))).toEqual([]);
    expect(run.state.stage.kind).toBe("closed");
    expect(GOODBYE_LIMIT_MS).toBe(5_000);
  });

  it("should count failures until a Beat is acknowledged on a session that has lasted for 10 s", () => {
    const run = new Run(loaded(true, ["a"]));
    for (const _ of [1, 2]) {
      run.step(notOpened(refused("NODE_REJECTED")));
      run.wait();
    }
    expect(run.state).toMatchObject({ failures: 2, rejectedAtMs: 0 });
    run.step(opened());
    run.nowMs += 9_999;
    run.step({ kind: "acked" });
    expect(run.state).toMatchObject({ failures: 2, rejectedAtMs: null });
    run.nowMs += 1;
    run.step({ kind: "acked" });
    expect(run.state).toMatchObject({ failures: 0, rejectedAtMs: null });
  });

  it("should back off from a server that welcomes it and ends its stream immediately", () => {
    const run = connected();
    const waits = Array.from({ length: 6 }, () => {
      run.step({ kind: "acked" });
      run.step(ended(refused(undefined)));
      const waitMs = (dueAtMs(run.state) ?? 0) - run.nowMs;
      run.wait();
      run.step(opened());
      return waitMs;
    });
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  });

  it("should never hold two sessions or open two streams, and stop permanently, under random events", () => {
    const ends = [UNREACHABLE, { kind: "silent" } as const, refused("NODE_REJECTED"), refused("NODE_NOT_REGISTERED")];
    const event = fc.constantFrom<AgentEvent>(
      ...[registered, opened(), moveAsked(["z"]), moveAsked([], true), due, due, { kind: "acked" } as const],
      ...ends.flatMap((end) => [notOpened(end), notOpened(end, true), notRegistered(end), ended(end)]),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 80 }), (history) => {
        const run = new Run(loaded(true));
        let opening = 1;
        for (const it of history) {
          // The shell only reports results of effects that are in progress.
          if ((it.kind === "opened" || it.kind === "not-opened") && opening === 0) continue;
          if (it.kind === "session-ended" && run.state.held === null) continue;
          if (it.kind === "opened" || it.kind === "not-opened") opening -= 1;
          const effects = it.kind === "due" ? run.wait() : run.step(it);
          opening += effects.filter((effect) => effect.startsWith("open ")).length;
          expect(opening).toBeLessThanOrEqual(1);
          const { stage, held } = run.state;
          if (stage.kind === "waiting" || stage.kind === "registering" || stage.kind === "opening")
            expect(held).toBeNull();
          const isWorking = stage.kind === "opening" || stage.kind === "registering" || opening > 0;
          if (stage.kind !== "connected" && stage.kind !== "idle" && !isWorking)
            expect(dueAtMs(run.state)).not.toBeNull();
        }
        run.step({ kind: "abort" });
        expect(run.state).toMatchObject({ stage: { kind: "closed" }, held: null });
        expect(run.step(opened())).toEqual([]);
      }),
    );
  });
});
