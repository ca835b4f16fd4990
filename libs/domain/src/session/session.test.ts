import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  AWAITING_HELLO,
  closeSession,
  decideFrame,
  type FrameKind,
  NO_SEQUENCE,
  onBeat,
  openSession,
  type SessionState,
} from "./session.ts";

const opening: SessionState = { kind: "opening" };
const open: SessionState = { kind: "open", epoch: 3, lastSequence: 5 };
const closed: SessionState = { kind: "closed", reason: "NODE_DELETED" };

describe("decideFrame()", () => {
  it.each<[SessionState, FrameKind, number, string]>([
    [AWAITING_HELLO, "hello", 0, "authenticate"],
    [AWAITING_HELLO, "beat", 1, "refuse HELLO_REQUIRED"],
    [AWAITING_HELLO, "node-info", 0, "refuse HELLO_REQUIRED"],
    [AWAITING_HELLO, "goodbye", 0, "refuse HELLO_REQUIRED"],
    [opening, "hello", 0, "refuse HELLO_REPEATED"],
    [opening, "beat", 1, "ignore"],
    [opening, "node-info", 0, "ignore"],
    [opening, "goodbye", 0, "leave"],
    [open, "hello", 0, "refuse HELLO_REPEATED"],
    [open, "beat", 4, "acknowledge"],
    [open, "beat", 5, "acknowledge"],
    [open, "beat", 6, "beat"],
    [open, "beat", 4_294_967_295, "beat"],
    [open, "node-info", 0, "node-info"],
    [open, "goodbye", 0, "leave"],
    [closed, "hello", 0, "ignore"],
    [closed, "beat", 9, "ignore"],
    [closed, "node-info", 0, "ignore"],
    [closed, "goodbye", 0, "ignore"],
  ])("should decide %j on %s %d: %s", (state, frame, sequence, expected) => {
    const decision = decideFrame(state, frame, sequence);
    const reason = decision.action === "refuse" ? ` ${decision.refusal.reason}` : "";

    expect(decision.action + reason).toBe(expected);
  });

  it("should lead a Hello to opening", () => {
    expect(decideFrame(AWAITING_HELLO, "hello")).toMatchObject({ next: { kind: "opening" } });
  });

  it("should lead a goodbye to the end, with its reason", () => {
    expect(decideFrame(open, "goodbye")).toMatchObject({
      next: { kind: "closed", reason: "AGENT_SHUTDOWN" },
    });
  });

  it("should lead a refusal to the end, with its reason", () => {
    expect(decideFrame(AWAITING_HELLO, "beat", 1)).toMatchObject({
      next: { kind: "closed", reason: "HELLO_REQUIRED" },
    });
    expect(decideFrame(open, "hello")).toMatchObject({
      next: { kind: "closed", reason: "HELLO_REPEATED" },
    });
  });

  it("should make no decision anew for a Beat", () => {
    expect(decideFrame(open, "beat", 6)).toBe(decideFrame(open, "beat", 7));
  });
});

describe("onBeat()", () => {
  it.each([
    [0, NO_SEQUENCE, true],
    [1, NO_SEQUENCE, true],
    [0, 0, false],
    [4, 5, false],
    [5, 5, false],
    [6, 5, true],
    [4_294_967_295, 4_294_967_294, true],
    [0, 4_294_967_295, false],
  ])("should let sequence %d after %d take effect: %s", (sequence, last, expected) => {
    expect(onBeat(sequence, last)).toBe(expected);
  });
});

describe("openSession()", () => {
  it("should open a session that waits for its epoch", () => {
    expect(openSession(opening, 4)).toEqual({ kind: "open", epoch: 4, lastSequence: NO_SEQUENCE });
  });

  it.each([AWAITING_HELLO, open, closed])("should not open %j", (state) => {
    expect(openSession(state, 4)).toBeNull();
  });
});

describe("closeSession()", () => {
  it.each([AWAITING_HELLO, opening, open])("should close %j", (state) => {
    expect(closeSession(state, "STREAM_STALE")).toEqual({ kind: "closed", reason: "STREAM_STALE" });
  });

  it("should keep the first reason", () => {
    expect(closeSession(closed, "STREAM_STALE")).toBe(closed);
  });
});

describe("a session over any frames", () => {
  it("should let each Beat take effect once, in order, and only between Welcome and end", () => {
    const kind = fc.constantFrom<FrameKind | "welcome">(
      ...(["hello", "welcome", "beat", "beat", "beat", "beat", "node-info", "goodbye"] as const),
    );
    const frames = fc.array(fc.tuple(kind, fc.nat({ max: 20 })), { maxLength: 40 });
    fc.assert(
      fc.property(frames, (arriving) => {
        let state: SessionState = AWAITING_HELLO;
        const effective: number[] = [];
        for (const [frame, sequence] of arriving) {
          if (frame === "welcome") {
            state = openSession(state, 1) ?? state;
            continue;
          }
          const decision = decideFrame(state, frame, sequence);
          if (decision.action === "beat" || decision.action === "node-info") {
            expect(state.kind).toBe("open");
          }
          if (decision.action === "beat" && state.kind === "open") {
            effective.push(sequence);
            state = { ...state, lastSequence: sequence };
          }
          if ("next" in decision) state = decision.next;
        }
        expect(effective).toEqual([...new Set(effective)].sort((left, right) => left - right));
      }),
    );
  });
});
