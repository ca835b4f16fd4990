import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { Detector } from "./detector.ts";
import { ObservedTime } from "./observed-time.ts";

function started() {
  return new ObservedTime({ startMs: 0, maxGapMs: 1000 });
}

/** Advance in normal steps, so that nothing is lost. */
function follow(time: ObservedTime, fromMs: number, toMs: number): void {
  for (let nowMs = fromMs + 100; nowMs <= toMs; nowMs += 100) time.advance(nowMs);
}

describe("ObservedTime.advance()", () => {
  it.each([
    [999, 0, 999],
    [1000, 0, 1000],
    [1001, 1, 1000],
    [61_000, 60_000, 1000],
  ])("should lose what a gap of %d ms lasts beyond the limit: %d", (gapMs, lostMs, observedMs) => {
    const time = started();

    expect(time.advance(gapMs)).toBe(lostMs);
    expect(time.at(gapMs)).toBe(observedMs);
    expect(time.lostTotalMs).toBe(lostMs);
  });
});

describe("ObservedTime.at()", () => {
  it("should run ahead of the last advance, but not beyond the limit", () => {
    const time = started();

    expect([time.at(400), time.at(1000), time.at(5000)]).toEqual([400, 1000, 1000]);
  });

  it("should never run backwards", () => {
    const time = started();

    expect([time.at(400), time.at(300)]).toEqual([400, 400]);
  });
});

describe("ObservedTime.suspend()", () => {
  it("should stand still until it resumes, and grant all that time", () => {
    const time = started();
    follow(time, 0, 2000);
    time.suspend(2000);

    expect(time.suspended).toBe(true);
    expect(time.advance(600_000)).toBe(0);
    expect(time.at(600_000)).toBe(2000);
    expect(time.resume(600_000)).toBe(598_000);
    expect(time.suspended).toBe(false);
    expect(time.at(600_500)).toBe(2500);
    expect(time.lostTotalMs).toBe(598_000);
  });

  it("should take back the time observed since, standing still until it is paid", () => {
    const time = started();
    follow(time, 0, 10_000);
    time.suspend(4000);

    expect(time.resume(12_000)).toBe(8000);
    expect(time.at(12_000)).toBe(10_000);
    follow(time, 12_000, 18_000);
    expect(time.at(18_000)).toBe(10_000);
    follow(time, 18_000, 19_000);
    expect(time.at(19_000)).toBe(11_000);
  });

  it("should not grant a gap twice that lies within", () => {
    const time = started();
    follow(time, 0, 1000);
    expect(time.advance(61_000)).toBe(59_000);
    time.suspend(500);

    // Only 500 to 2000 and 61000 to 62000 are granted now: 2000 to 61000 was granted before.
    expect(time.resume(62_000)).toBe(2500);
    expect(time.lostTotalMs).toBe(61_500);
  });

  it("should not grant the overlap of two suspensions twice", () => {
    const time = started();
    follow(time, 0, 5000);
    time.suspend(2000);
    expect(time.resume(6000)).toBe(4000);
    time.suspend(4000);
    // Only the last 500 ms are granted now: the time from 4000 to 6000 was granted before.
    expect(time.resume(6500)).toBe(500);
    time.suspend(1000);

    expect(time.resume(7000)).toBe(1500);
    expect(time.lostTotalMs).toBe(6000);
  });

  it("should observe up to a time ahead of the last advance", () => {
    const time = started();
    time.suspend(500);

    expect(time.resume(700)).toBe(200);
    expect(time.at(700)).toBe(500);
  });

  it("should keep the earlier time when suspended again", () => {
    const time = started();
    follow(time, 0, 3000);
    time.suspend(2000);
    time.suspend(2500);
    time.suspend(1000);

    expect(time.resume(4000)).toBe(3000);
  });
});

describe("ObservedTime.resume()", () => {
  it("should grant nothing when it was not suspended", () => {
    const time = started();
    follow(time, 0, 1000);

    expect(time.resume(1000)).toBe(0);
    expect(time.at(1000)).toBe(1000);
  });
});

describe("a Detector on observed time", () => {
  it("should grant the time of a stop to every node", () => {
    const time = started();
    const detector = new Detector<string>({ tickMs: 100 });
    const thresholds = { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000 };
    for (const subject of ["a", "b"]) {
      detector.track(subject, { health: "HEALTHY", lastReceivedMs: time.at(0), thresholds });
    }
    follow(time, 0, 30_000);
    detector.advance(time.at(30_000));
    // Stop the process for ten minutes.
    const lostMs = time.advance(630_000);
    const dueMs = 60_000 + lostMs;

    expect(detector.advance(time.at(630_000))).toEqual([]);
    follow(time, 630_000, dueMs - 100);
    expect(detector.advance(time.at(dueMs - 100))).toEqual([]);
    follow(time, dueMs - 100, dueMs);
    expect(detector.advance(time.at(dueMs))).toHaveLength(2);
  });
});

type Step =
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "at" | "advance" | "resume" }
  | { readonly kind: "suspend"; readonly agoMs: number };

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat({ max: 30 }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constantFrom("at" as const, "advance" as const, "resume" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("suspend" as const), agoMs: fc.nat({ max: 150 }) }),
  },
);

/**
 * A simple model of ObservedTime. It counts single milliseconds, records which of them were observed, and
 * removes those that a suspension takes back.
 */
class CountedTime {
  readonly #maxGapMs: number;
  readonly #counts: boolean[] = [];
  #highestMs = 0;
  #suspendedSinceMs: number | null = null;

  constructor(maxGapMs: number) {
    this.#maxGapMs = maxGapMs;
  }

  get observedMs(): number {
    return this.#counts.filter(Boolean).length;
  }

  get lostMs(): number {
    return this.#counts.length - this.observedMs;
  }

  at(realMs: number): number {
    if (this.#suspendedSinceMs === null) {
      const aheadMs = Math.min(realMs - this.#counts.length, this.#maxGapMs);
      this.#highestMs = Math.max(this.#highestMs, this.observedMs + aheadMs);
    }
    return this.#highestMs;
  }

  advance(realMs: number): void {
    if (this.#suspendedSinceMs !== null) return;
    this.#extend(realMs);
    this.#highestMs = Math.max(this.#highestMs, this.observedMs);
  }

  suspend(sinceMs: number): void {
    this.advance(sinceMs);
    this.#suspendedSinceMs = Math.min(this.#suspendedSinceMs ?? sinceMs, sinceMs);
  }

  resume(realMs: number): void {
    if (this.#suspendedSinceMs === null) return;
    this.#extend(realMs);
    this.#counts.fill(false, this.#suspendedSinceMs);
    this.#suspendedSinceMs = null;
  }

  #extend(realMs: number): void {
    const lastMs = this.#counts.length;
    for (let ms = lastMs; ms < realMs; ms++) this.#counts.push(ms - lastMs < this.#maxGapMs);
  }
}

describe("ObservedTime compared with counting", () => {
  const steps = fc.array(anyStep, { maxLength: 60, size: "max" });

  it("should observe and grant exactly the same", () => {
    fc.assert(
      fc.property(steps, (schedule) => {
        const time = new ObservedTime({ startMs: 0, maxGapMs: 10 });
        const counted = new CountedTime(10);
        let realMs = 0;
        let grantedMs = 0;
        for (const step of schedule) {
          switch (step.kind) {
            case "pass":
              realMs += step.ms;
              break;
            case "at":
              expect(time.at(realMs)).toBe(counted.at(realMs));
              break;
            case "advance":
              grantedMs += time.advance(realMs);
              counted.advance(realMs);
              break;
            case "suspend": {
              const sinceMs = Math.max(0, realMs - step.agoMs);
              time.suspend(sinceMs);
              counted.suspend(sinceMs);
              break;
            }
            case "resume":
              grantedMs += time.resume(realMs);
              counted.resume(realMs);
          }
          if (!time.suspended) expect(time.lostTotalMs).toBe(counted.lostMs);
          expect(grantedMs).toBeLessThanOrEqual(time.lostTotalMs);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("should never run faster than the real clock, nor backwards", () => {
    fc.assert(
      fc.property(steps, (schedule) => {
        const time = new ObservedTime({ startMs: 0, maxGapMs: 10 });
        let realMs = 0;
        let beforeMs = 0;
        for (const step of schedule) {
          const passedMs = step.kind === "pass" ? step.ms : 0;
          realMs += passedMs;
          if (step.kind === "advance") time.advance(realMs);
          if (step.kind === "resume") time.resume(realMs);
          if (step.kind === "suspend") time.suspend(Math.max(0, realMs - step.agoMs));
          const observedMs = time.at(realMs);
          expect(observedMs - beforeMs).toBeGreaterThanOrEqual(0);
          expect(observedMs - beforeMs).toBeLessThanOrEqual(passedMs);
          beforeMs = observedMs;
        }
      }),
      { numRuns: 500 },
    );
  });
});
