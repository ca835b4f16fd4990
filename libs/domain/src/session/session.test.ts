import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type FrameKind, Session, type SessionPhase } from "./session.ts";

/** Create a session in a phase. An open session has epoch 3 and has received a Beat with sequence 5. */
function sessionIn(phase: SessionPhase): Session {
  const session = new Session();
  if (phase === "awaiting-hello") return session;
  session.receive("hello");
  if (phase === "opening") return session;
  session.open(3);
  session.receive("beat", 5);
  if (phase === "closed") session.close();
  return session;
}

const PHASES: readonly SessionPhase[] = ["awaiting-hello", "opening", "open", "closed"];

describe("receive()", () => {
  it.each<[SessionPhase, FrameKind, number, string]>([
    ["awaiting-hello", "hello", 0, "check-hello"],
    ["awaiting-hello", "beat", 1, "refuse HELLO_REQUIRED"],
    ["awaiting-hello", "node-info", 0, "refuse HELLO_REQUIRED"],
    ["awaiting-hello", "goodbye", 0, "refuse HELLO_REQUIRED"],
    ["awaiting-hello", "unknown", 0, "refuse HELLO_REQUIRED"],
    ["opening", "hello", 0, "refuse HELLO_REPEATED"],
    ["opening", "beat", 1, "ignore"],
    ["opening", "node-info", 0, "ignore"],
    ["opening", "goodbye", 0, "leave"],
    ["opening", "unknown", 0, "ignore"],
    ["open", "hello", 0, "refuse HELLO_REPEATED"],
    ["open", "beat", 4, "acknowledge"],
    ["open", "beat", 5, "acknowledge"],
    ["open", "beat", 6, "beat"],
    ["open", "beat", 4_294_967_295, "beat"],
    ["open", "node-info", 0, "node-info"],
    ["open", "goodbye", 0, "leave"],
    ["open", "unknown", 0, "ignore"],
    ["closed", "hello", 0, "ignore"],
    ["closed", "beat", 9, "ignore"],
    ["closed", "node-info", 0, "ignore"],
    ["closed", "goodbye", 0, "ignore"],
    ["closed", "unknown", 0, "ignore"],
  ])("should return, in phase %s on %s %d: %s", (phase, frame, sequence, expected) => {
    const effect = sessionIn(phase).receive(frame, sequence);
    const reason = effect.action === "refuse" ? ` ${effect.refusal.reason}` : "";

    expect(effect.action + reason).toBe(expected);
  });

  it("should lead a Hello to opening, and a goodbye to the end", () => {
    expect(sessionIn("opening").phase).toBe("opening");
    for (const phase of ["opening", "open"] as const) {
      const session = sessionIn(phase);
      session.receive("goodbye");
      expect(session.phase).toBe("closed");
    }
  });

  it("should keep the highest sequence, and recognize the first Beat", () => {
    const session = sessionIn("opening");
    session.open(1);
    expect(session.hasBeaten).toBe(false);
    expect(session.receive("beat", 0)).toEqual({ action: "beat", isFirst: true });
    expect(session.hasBeaten).toBe(true);
    expect(session.receive("beat", 0)).toEqual({ action: "acknowledge" });
    expect(session.receive("beat", 4_294_967_294)).toEqual({ action: "beat", isFirst: false });
    expect(session.receive("beat", 4_294_967_295)).toEqual({ action: "beat", isFirst: false });
    expect(session.receive("beat", 0)).toEqual({ action: "acknowledge" });
    expect(session.lastSequence).toBe(4_294_967_295);
  });

  it("should take sequences of calls from 1", () => {
    const session = new Session(1);
    session.receive("hello");
    session.open(1);
    expect(session.lastSequence).toBe(0);
    expect(session.receive("beat", 0)).toEqual({ action: "acknowledge" });
    expect(session.hasBeaten).toBe(false);
    expect(session.receive("beat", 1)).toEqual({ action: "beat", isFirst: true });
  });

  it("should allocate no effect for a Beat", () => {
    const session = sessionIn("open");
    expect(session.receive("beat", 6)).toBe(session.receive("beat", 7));
    expect(session.receive("beat", 6)).toBe(session.receive("beat", 7));
  });
});

describe("open()", () => {
  it("should open a session that waits for its epoch, and no other", () => {
    for (const phase of PHASES) {
      const session = sessionIn(phase);
      expect([phase, session.open(4)]).toEqual([phase, phase === "opening"]);
      if (phase === "opening") expect(session).toMatchObject({ phase: "open", epoch: 4, hasBeaten: false });
      else expect(session.phase).toBe(phase);
    }
  });
});

describe("close()", () => {
  it("should close a session in any phase, once", () => {
    for (const phase of PHASES) {
      const session = sessionIn(phase);
      expect([phase, session.close()]).toEqual([phase, phase !== "closed"]);
      expect(session.phase).toBe("closed");
    }
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
        const session = new Session();
        const effective: number[] = [];
        for (const [frame, sequence] of arriving) {
          if (frame === "welcome") {
            session.open(1);
            continue;
          }
          const { phase } = session;
          const { action } = session.receive(frame, sequence);
          if (action === "beat" || action === "node-info") expect(phase).toBe("open");
          if (action === "beat") effective.push(sequence);
        }
        expect(effective).toEqual([...new Set(effective)].sort((left, right) => left - right));
      }),
    );
  });
});
