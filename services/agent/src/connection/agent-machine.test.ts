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
  it("should register first where it never did, and open a stream then", () => {
    const run = new Run();
    expect(run.step(loaded(false, []))).toEqual(["register"]);
    expect(run.step(registered)).toEqual(["open a"]);
    expect(run.step(opened(["b"], 4n))).toEqual(["hold"]);
    expect(run.state).toMatchObject({ held: { endpoint: "a", epoch: 4n }, membership: "APPROVED", endpoints: ["b"] });
  });

  it("should skip registration where it is remembered, and spread over the endpoints", () => {
    const run = new Run();
    run.state = beginAgent(1 / 1_024);
    expect(run.step(loaded(true))).toEqual(["open b"]);
  });

  it("should try every endpoint before it waits, and begin with the next one after that", () => {
    const run = new Run(loaded(true));
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open b"]);
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["open c"]);
    // It was just started, and what it knows may be old.
    expect(run.step(notOpened(UNREACHABLE))).toEqual(["register"]);
    expect(run.step(notRegistered(refused("OVERLOADED")))).toEqual(["log retry"]);
    expect(run.state).toMatchObject({ stage: { kind: "waiting" }, unreachable: 3, failures: 1 });
    expect(run.wait()).toEqual(["open a"]);
    expect(run.step(notOpened(refused("OVERLOADED")))).toEqual(["log retry"]);
    expect(run.state.unreachable).toBe(0);
    expect(run.wait()).toEqual(["open b"]);
  });

  it("should not open a stream before a registration that the server asks for", () => {
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
  ])("should move %s, and leave the present stream only then", (_, named, open) => {
    const run = connected();
    expect(run.step(moveAsked(named))).toEqual([]);
    expect(run.state.held?.endpoint).toBe("a");
    expect(run.wait()).toEqual([open]);
    expect(run.state.stage.kind).toBe("connected");
    expect(run.step(opened([], 2n))).toEqual(["hold"]);
    expect(run.state).toMatchObject({ held: { epoch: 2n }, stage: { kind: "connected", move: null } });
  });

  it("should move after the time that the server gives and up to a second of its own", () => {
    for (const [random01, atMs] of [
      [0, 100],
      [0.5, 600],
    ] as const) {
      const run = connected();
      run.step(moveAsked(), random01);
      expect(dueAtMs(run.state)).toBe(atMs);
    }
  });

  it("should stay at its replica for a wish of its own", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.wait()).toEqual(["open a"]);
  });

  it("should begin a move where the server says, and go on to all that it knows", () => {
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

  it("should try its own address, behind which others may be, where it knows no other", () => {
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

  it("should come back where it was sent, when its stream ends before it has moved, until a Welcome names others", () => {
    const run = connected();
    run.step(moveAsked(["y", "z"]));
    run.step(ended(refused("SERVER_SHUTTING_DOWN")));
    expect(run.wait()).toEqual(["open y"]);
    run.step(opened(["a", "b"]));
    run.step(ended(refused("SERVER_SHUTTING_DOWN")));
    expect(run.wait()).not.toEqual(["open y"]);
  });

  it("should follow an order to move in place of a move that waits", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.step(moveAsked(["y"]))).toEqual([]);
    expect(run.wait()).toEqual(["open y"]);
  });

  it("should follow an order to move once what is being opened has failed", () => {
    const run = connected();
    run.step(moveAsked([], true));
    expect(run.wait()).toEqual(["open a"]);
    expect(run.step(moveAsked(["y"]))).toEqual([]);
    expect(run.step(notOpened(refused("SERVER_SHUTTING_DOWN")))).toEqual([]);
    expect(run.wait()).toEqual(["open y"]);
  });

  it("should keep opening the next stream when the present one ends meanwhile", () => {
    const run = connected();
    run.step(moveAsked(["z"]));
    run.wait();
    // The Hello of the move took the session: that is no other process with this identity.
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

  it.each(["NODE_REJECTED", "NODE_BANNED"])("should leave the present stream too when a move is told %s", (reason) => {
    const run = connected();
    run.step(moveAsked());
    run.wait();
    expect(run.step(notOpened(refused(reason)))).toEqual(["drop", "log retry"]);
    expect(run.state.held).toBeNull();
  });

  it("should say goodbye on the present stream, whatever is being opened", () => {
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

  it("should back off from a server that welcomes it and ends its stream at once", () => {
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

  it("should never hold two sessions, nor open two streams, and end for good, whatever comes", () => {
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
          // A shell answers for what it was told to do alone.
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
