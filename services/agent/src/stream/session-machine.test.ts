import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import {
  AckSchema,
  ChallengeSchema,
  ExecutionsSchema,
  GoAwayAction,
  GoAwaySchema,
  type HeartbeatResponse,
  ReportAckSchema,
  SettingsSchema,
  WelcomeSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { faultsOverIntervals } from "@rollcall/testkit/time";
import fc from "fast-check";
import { DEFAULT_PACE } from "./pace.ts";
import { beginSession, CONNECT_TIMEOUT_MS, nextDueMs, stepSession, WELCOME_TIMEOUT_MS } from "./session-machine.ts";
import type { SessionEvent, SessionState } from "./session-state.ts";

const INFO = create(NodeInfoSchema);
const DIGEST = new Uint8Array([1, 2, 3]);
const CHALLENGE = create(ChallengeSchema, { nonce: new Uint8Array(32) });

const settings = (generation = 1, heartbeatMs = 1_000) =>
  create(SettingsSchema, {
    generation,
    heartbeatInterval: durationFromMs(heartbeatMs),
    infoInterval: durationFromMs(60_000),
    unhealthyAfter: durationFromMs(30_000),
  });

const frame = (of: HeartbeatResponse["frame"]): SessionEvent => ({ kind: "frame", frame: of });
const challenge = frame({ case: "challenge", value: CHALLENGE });
const described: SessionEvent = { kind: "described", challenge: CHALLENGE, digest: DIGEST };
const welcome = (nodeInfoWanted = false) =>
  frame({ case: "welcome", value: create(WelcomeSchema, { settings: settings(), nodeInfoWanted, sessionEpoch: 7n }) });
const ack = (sequence: number, nextIntervalMs = 0) =>
  frame({ case: "ack", value: create(AckSchema, { sequence, nextIntervalMs }) });
const goAway = (action: GoAwayAction) => frame({ case: "goAway", value: create(GoAwaySchema, { action }) });
const due: SessionEvent = { kind: "due" };
const infoRead = (digest: Uint8Array, isWanted = false): SessionEvent => ({
  kind: "info-read",
  info: INFO,
  digest,
  isWanted,
});

/** A session that returns its effects as text. News is written as `tell:KIND`. */
class Run {
  state: SessionState = beginSession({ pace: DEFAULT_PACE, infoCheckMs: 30_000, nowMs: 0 });
  nowMs = 0;

  /** The effects of an event. */
  step(event: SessionEvent, afterMs = 0): readonly string[] {
    this.nowMs += afterMs;
    const { state, effects } = stepSession(this.state, event, this.nowMs);
    this.state = state;
    return effects.map((effect) => (effect.kind === "tell" ? `tell:${effect.news.kind}` : effect.kind));
  }

  /** Let time pass, and return the effects of everything that becomes due. */
  pass(ms: number): readonly string[] {
    const untilMs = this.nowMs + ms;
    const done: string[] = [];
    for (;;) {
      const dueMs = nextDueMs(this.state);
      if (dueMs === null || dueMs > untilMs) break;
      this.nowMs = dueMs;
      done.push(...this.step(due));
    }
    this.nowMs = untilMs;
    return done;
  }

  /** Apply an event, and return its effect of this kind. */
  effect<K extends string>(event: SessionEvent, kind: K) {
    const step = stepSession(this.state, event, this.nowMs);
    this.state = step.state;
    return step.effects.find((it) => it.kind === kind);
  }

  static open(): Run {
    const run = new Run();
    for (const event of [challenge, described, welcome()]) run.step(event);
    return run;
  }
}

/** Apply an event, and return the end of the session that it causes. */
function endOf(run: Run, event: SessionEvent) {
  const { effects } = stepSession(run.state, event, run.nowMs);
  return effects.flatMap((it) => (it.kind === "tell" && it.news.kind === "ended" ? [it.news.end] : []))[0];
}

describe("stepSession()", () => {
  it("should keep a stream with one Ack per interval, and drop it once there are none", async () => {
    const stepMs = 500;
    const faults = await faultsOverIntervals(() => {
      const run = Run.open();
      const acknowledge = () => run.step(ack(run.state.sequence));
      acknowledge();
      return {
        // A third of the time to UNHEALTHY.
        ...{ limitMs: 10_000, stepMs },
        pass: (ms) => run.pass(ms),
        progress: acknowledge,
        isKept: () => run.state.phase === "open",
      };
    });
    expect(faults).toEqual([]);
  });

  it("should send one beat and one measurement per interval, and tell the time once a minute", () => {
    const run = Run.open();
    const counts = new Map<string, number>();
    for (let interval = 0; interval < 300; interval += 1) {
      run.step(ack(run.state.sequence));
      for (const effect of run.pass(1_000)) counts.set(effect, (counts.get(effect) ?? 0) + 1);
    }
    expect(Object.fromEntries(counts)).toMatchObject({ measure: 300, "send-beat": 300 });
  });

  it("should send Hello and beats, and check the machine", () => {
    const run = new Run();
    expect(run.step(challenge)).toEqual(["measure", "describe"]);
    expect(run.step(described)).toEqual(["send-hello"]);
    expect(run.step(welcome())).toEqual(["tell:settings", "tell:opened", "send-beat"]);
    expect(run.step(ack(1))).toEqual(["tell:acked"]);
    expect(run.pass(1_000)).toEqual(["measure", "send-beat"]);
    run.step(ack(2));
    expect(run.state).toMatchObject({ phase: "open", sequence: 2, unansweredSinceMs: null });
  });

  it("should accept each frame once, and only in its phase", () => {
    const run = new Run();
    expect(run.step(welcome())).toEqual([]);
    expect(run.step(ack(1))).toEqual([]);
    expect(run.step(described)).toEqual([]);
    run.step(challenge);
    expect(run.step(challenge)).toEqual([]);
    run.step(described);
    run.step(welcome());
    expect(run.step(welcome())).toEqual([]);
    expect(run.step(frame({ case: undefined }))).toEqual([]);
  });

  it.each([
    ["connecting", [], CONNECT_TIMEOUT_MS, "unreachable"],
    ["greeting", [challenge, described], WELCOME_TIMEOUT_MS, "silent"],
    // A third of the 30 s until UNHEALTHY, counted from the Welcome.
    ["open", [challenge, described, welcome()], 10_000, "silent"],
  ] as const)("should time out while %s", (_, events, limitMs, kind) => {
    const run = new Run();
    for (const event of events) run.step(event);
    run.pass(limitMs - 1);
    expect(run.state.phase).not.toBe("ended");
    run.nowMs += 1;
    for (let left = 5; left > 0 && nextDueMs(run.state) !== run.state.patienceAtMs; left -= 1) run.step(due);
    expect(endOf(run, due)).toMatchObject({ kind });
  });

  it("should treat a late Ack as a sign of life, not as the answer to the last Beat", () => {
    const run = Run.open();
    run.pass(1_000);
    expect(run.state.sequence).toBe(2);
    run.nowMs += 100;
    run.step(ack(1));
    expect(run.state).toMatchObject({ lastAckAtMs: 1_100, unansweredSinceMs: 1_000 });
    expect(run.state.patienceAtMs).toBe(11_100);
    run.step(ack(2));
    expect(run.state.patienceAtMs).toBeNull();
  });

  it("should apply an Ack's interval, and beat immediately if it has passed", () => {
    const run = Run.open();
    run.step(ack(1, 5_000), 200);
    expect(run.state.beatAtMs).toBe(5_000);
    run.step(ack(1, 100), 800);
    expect(run.state.beatAtMs).toBe(1_000);
    expect(run.pass(0)).toEqual(["measure", "send-beat"]);
  });

  it("should confirm its settings once", () => {
    const run = Run.open();
    const generation = () => {
      run.nowMs = run.state.beatAtMs ?? 0;
      run.state = { ...run.state, measureAtMs: null, patienceAtMs: null };
      return run.effect(due, "send-beat");
    };
    expect(generation()).toMatchObject({ sequence: 2, settingsGeneration: 0 });
    run.step(frame({ case: "settings", value: settings(2) }));
    expect(generation()).toMatchObject({ sequence: 3, settingsGeneration: 2 });
    expect(generation()).toMatchObject({ sequence: 4, settingsGeneration: 0 });
  });

  it("should send the wall time in its Hello, and once a minute after that", () => {
    const run = new Run();
    run.step(challenge);
    expect(run.effect(described, "send-hello")).toMatchObject({ tellsTime: true });
    expect(run.effect(welcome(), "send-beat")).toMatchObject({ tellsTime: false });
    run.state = { ...run.state, measureAtMs: null, patienceAtMs: null, scanAtMs: null };
    run.nowMs = 59_999;
    expect(run.effect(due, "send-beat")).toMatchObject({ tellsTime: false });
    run.nowMs = 60_999;
    run.state = { ...run.state, measureAtMs: null, patienceAtMs: null };
    expect(run.effect(due, "send-beat")).toMatchObject({ tellsTime: true });
  });

  it("should report the node's description when requested, changed or due", () => {
    const run = new Run();
    for (const event of [challenge, described]) run.step(event);
    expect(run.step(welcome(true))).toContain("read-info");
    expect(run.step(infoRead(DIGEST, true))).toEqual(["send-info"]);
    run.state = { ...run.state, beatAtMs: null, measureAtMs: null, patienceAtMs: null };
    expect(run.pass(30_000)).toEqual(["read-info"]);
    expect(run.step(infoRead(DIGEST))).toEqual([]);
    expect(run.step(infoRead(new Uint8Array([9])))).toEqual(["send-info"]);
    expect(run.step(infoRead(new Uint8Array([9])), 60_000)).toEqual(["send-info"]);
    run.step({ kind: "drop" });
    expect(run.step(infoRead(DIGEST, true))).toEqual([]);
  });

  it("should report each state of the machine once, requested or not", () => {
    const other = new Uint8Array([4, 5, 6]);
    const changed = Run.open();
    expect(changed.step(infoRead(other))).toEqual(["send-info"]);
    expect(changed.step(infoRead(other), 30_000)).toEqual([]);
    const asked = Run.open();
    expect(asked.step(infoRead(other, true))).toEqual(["send-info"]);
    expect(asked.step(infoRead(other), 30_000)).toEqual([]);
    expect(asked.step(infoRead(other), 30_000)).toEqual(["send-info"]);
  });

  it("should send a goodbye, and close when the server acknowledges it or is too late", () => {
    const goodbye: SessionEvent = { kind: "goodbye", reason: "x".repeat(2_000), limitMs: 5_000, leavesWork: false };
    const run = Run.open();
    expect(run.effect(goodbye, "send-goodbye")).toEqual({
      kind: "send-goodbye",
      reason: "x".repeat(1_024),
      leavesWork: false,
    });
    // No frame follows a goodbye.
    expect(run.step(infoRead(DIGEST, true))).toEqual([]);
    expect(run.pass(4_999)).toEqual([]);
    expect(run.pass(1)).toEqual(["cancel", "tell:ended"]);
    const early = new Run();
    expect(early.step(goodbye)).toEqual(["cancel", "tell:ended"]);
  });

  it("should move on request while it is open, and end otherwise", () => {
    expect(Run.open().step(goAway(GoAwayAction.MOVE))).toEqual(["tell:move-asked"]);
    expect(Run.open().step(goAway(GoAwayAction.REGISTER))).toEqual(["cancel", "tell:ended"]);
    expect(new Run().step(goAway(GoAwayAction.MOVE))).toEqual(["cancel", "tell:ended"]);
    expect(endOf(new Run(), { kind: "stream-ended", error: undefined })).toMatchObject({ kind: "unreachable" });
    expect(endOf(Run.open(), { kind: "stream-ended", error: undefined })).toMatchObject({ kind: "refused" });
  });

  it("should end once, with nothing due, and send sequences that increase by one, under random events", () => {
    const events = [challenge, described, welcome(), welcome(true), ack(1), ack(3, 200), due, infoRead(DIGEST, true)];
    const others = [frame({ case: "settings", value: settings(3, 500) }), goAway(GoAwayAction.MOVE)];
    const ends: SessionEvent[] = [{ kind: "drop" }, { kind: "goodbye", reason: "", limitMs: 10, leavesWork: false }];
    const event = fc.constantFrom(...events, ...others, ...ends, due, due);
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.integer({ min: 0, max: 2_000 })), { maxLength: 60 }), (history) => {
        let state = beginSession({ pace: DEFAULT_PACE, infoCheckMs: 30_000, nowMs: 0 });
        let nowMs = 0;
        let sequence = 0;
        let ended = 0;
        for (const [it, afterMs] of [...events.slice(0, 3).map((first) => [first, 0] as const), ...history]) {
          nowMs += afterMs;
          const step = stepSession(state, it, nowMs);
          state = step.state;
          for (const effect of step.effects) {
            expect(ended).toBe(0);
            if (effect.kind === "send-beat") {
              sequence += 1;
              expect(effect.sequence).toBe(sequence);
            }
            if (effect.kind === "tell" && effect.news.kind === "ended") ended += 1;
          }
          if (state.phase === "ended") expect(nextDueMs(state)).toBeNull();
          if (state.phase === "open") expect(nextDueMs(state)).not.toBeNull();
        }
        expect(ended).toBe(state.phase === "ended" ? 1 : 0);
      }),
    );
  });
});

describe("stepSession() of a node that runs work", () => {
  const REFERENCES = frame({ case: "executions", value: create(ExecutionsSchema, { logId: "log-1", whole: true }) });
  const reportAck = (number: bigint) => frame({ case: "reportAck", value: create(ReportAckSchema, { number }) });
  const changed: SessionEvent = { kind: "work-changed", ids: ["e1"], wantedSpecs: ["aa"] };

  function opened(isKnown = true): Run {
    const run = new Run();
    run.state = beginSession({ pace: DEFAULT_PACE, infoCheckMs: 30_000, nowMs: 0, work: { isKnown } });
    for (const event of [challenge, described, welcome()]) run.step(event);
    return run;
  }

  it("should report everything after the Welcome, and changes once that is acknowledged", () => {
    const run = opened();
    expect(run.pass(1)).toEqual(["send-report"]);
    expect(run.step(changed)).toEqual(["send-want-specs"]);
    expect(run.pass(100)).toEqual([]);
    expect(run.step(reportAck(1n))).toEqual(["tell:report-acked"]);
    expect(run.pass(100)).toEqual(["send-report"]);
  });

  it("should pass on the desired executions, and repeat the complete report on request", () => {
    const run = opened();
    run.pass(1);
    run.step(reportAck(1n));
    expect(run.step(REFERENCES)).toEqual(["tell:executions"]);
    expect(run.pass(100)).toEqual([]);
    const asking = create(ExecutionsSchema, { reportWanted: true });
    expect(run.step(frame({ case: "executions", value: asking }))).toEqual(["tell:executions"]);
    expect(run.pass(100)).toEqual(["send-report"]);
  });

  it("should report nothing before the machine's executions are known", () => {
    const run = opened(false);
    expect(run.pass(100)).toEqual([]);
    run.step(changed);
    expect(run.pass(1)).toEqual(["send-report"]);
  });

  it("should send nothing before the Welcome, nor after its goodbye", () => {
    const run = new Run();
    run.state = beginSession({ pace: DEFAULT_PACE, infoCheckMs: 30_000, nowMs: 0, work: { isKnown: true } });
    expect(run.step(changed)).toEqual([]);
    expect(run.pass(100)).toEqual([]);
    const leaving = opened();
    expect(leaving.step({ kind: "goodbye", reason: "", limitMs: 1_000, leavesWork: true })).toEqual(["send-goodbye"]);
    expect(leaving.step(changed)).toEqual([]);
    expect(leaving.pass(100)).toEqual([]);
  });

  it("should ignore frames about work on a node that runs none", () => {
    const run = new Run();
    for (const event of [challenge, described, welcome()]) run.step(event);
    for (const event of [REFERENCES, reportAck(1n), changed]) expect(run.step(event)).toEqual([]);
  });

  it("should report new information immediately, without reading the machine", () => {
    const { effects } = stepSession(opened().state, { kind: "look" }, 1);
    expect(effects).toEqual([{ kind: "read-info", refresh: false, isWanted: false }]);
  });
});
