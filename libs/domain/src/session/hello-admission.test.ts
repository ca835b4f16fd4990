import { describe, expect, it } from "@jest/globals";
import { HelloAdmission } from "./hello-admission.ts";

function asks(admission: HelloAdmission, count: number, nowMs: number) {
  return Array.from({ length: count }, () => admission.ask(nowMs));
}

const admitted = (decisions: readonly { readonly ok: boolean }[]) => decisions.filter(({ ok }) => ok).length;
const turns = (decisions: ReturnType<typeof asks>) =>
  decisions.flatMap((decision) => (decision.ok ? [] : [decision.retryAfterMs]));

describe("HelloAdmission", () => {
  it("should let a burst in, then its rate", () => {
    const admission = new HelloAdmission(100, 0);
    expect(admitted(asks(admission, 150, 0))).toBe(100);
    expect(admitted(asks(admission, 150, 500))).toBe(50);
    expect(admitted(asks(admission, 150, 10_000))).toBe(100);
  });

  it("should give those that it turns away their turns at the rate at which they can be welcomed", () => {
    const admission = new HelloAdmission(100, 0);
    const waits = turns(asks(admission, 600, 0));
    expect(waits).toHaveLength(500);
    expect(waits[0]).toBe(1_000);
    expect(waits[99]).toBe(1_000);
    expect(waits[299]).toBe(3_000);
    expect(waits[499]).toBe(5_000);
  });

  it("should not count those whose turn has come", () => {
    const admission = new HelloAdmission(100, 0);
    expect(turns(asks(admission, 500, 0)).at(-1)).toBe(4_000);
    // Of the 400 agents that were waiting, 100 have been allowed to return by now.
    asks(admission, 100, 1_000);
    expect(turns(asks(admission, 1, 1_000))).toEqual([3_010]);
    asks(admission, 100, 60_000);
    expect(turns(asks(admission, 1, 60_000))).toEqual([1_000]);
  });

  it("should send no caller away for more than a minute", () => {
    const admission = new HelloAdmission(1, 0);
    expect(turns(asks(admission, 1_000, 0)).at(-1)).toBe(60_000);
  });

  it("should count at most the agents that are scheduled within that minute", () => {
    const admission = new HelloAdmission(1, 0);
    asks(admission, 1_000, 0);
    // Only 60 agents got a time within the minute, and 59 of these times have passed.
    expect(admission.turnAway(59_000)).toBe(2_000);
  });
});

describe("HelloAdmission.tookIn()", () => {
  const lastTurn = (admission: HelloAdmission, asked: number) => turns(asks(admission, asked, 0)).at(-1) ?? 0;
  const takeIn = (admission: HelloAdmission, batches: number, hellos: number, tookMs: number) => {
    for (let batch = 0; batch < batches; batch++) admission.tookIn(hellos, tookMs);
  };

  it("should spread those that are turned away over the time that taking them in really takes", () => {
    const admission = new HelloAdmission(1_000, 0);
    takeIn(admission, 50, 200, 2_000);
    // 500 are turned away, and the pace is 100 per second.
    expect(lastTurn(admission, 1_500) / 5_000).toBeCloseTo(1, 2);
  });

  it("should still admit what the rate allows, and expect at most that", () => {
    const admission = new HelloAdmission(100, 0);
    takeIn(admission, 50, 200, 20_000);
    expect(admitted(asks(admission, 150, 0))).toBe(100);
    takeIn(admission, 50, 200, 1_000);
    // 50 are still waiting, and 200 more arrive. The pace is at most the limit of 100 per second, even if a
    // batch was faster.
    expect(lastTurn(admission, 200) / 2_500).toBeCloseTo(1, 2);
  });

  it("should count a batch by the time that it took, and learn nothing from one without a duration", () => {
    const admission = new HelloAdmission(1_000, 0);
    admission.tookIn(50, 200);
    admission.tookIn(200, 0);
    // The pace moves from 1,000 towards 250 per second by 1 - 1/e^0.1 of the difference, to 928.6 per second.
    expect(lastTurn(admission, 1_928)).toBe(1_000);
    expect(lastTurn(admission, 929) / 2_000).toBeCloseTo(1, 2);
  });

  it("should change the pace by at most half for one batch, which may have waited for the store", () => {
    const hiccup = new HelloAdmission(1_000, 0);
    hiccup.tookIn(200, 30_000);
    // The pace moves half of the way from 1,000 to 7 per second.
    expect(lastTurn(hiccup, 1_503)).toBe(1_000);
    expect(lastTurn(hiccup, 503) / 2_000).toBeCloseTo(1, 2);
  });
});

describe("HelloAdmission.turnAway()", () => {
  it("should count turns from when it began, and none twice when the clock was read late", () => {
    const admission = new HelloAdmission(1, 50_000);
    expect([51_000, 50_500, 51_000].map((nowMs) => admission.turnAway(nowMs))).toEqual([1_000, 2_000, 3_000]);
    expect(admission.turnAway(53_000)).toBe(2_000);
  });
});
