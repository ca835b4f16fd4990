import { describe, expect, it } from "@jest/globals";
import { Detector, type Due, type Timing } from "./detector.ts";

const thresholds = { unhealthyAfterMs: 1000, unknownAfterMs: 5000 };

function watched(lastReceivedMs = 0) {
  const detector = new Detector<string>({ tickMs: 100, wheelTicks: 16 });
  const watch = detector.track("n1", { health: "HEALTHY", lastReceivedMs, thresholds });
  return { detector, watch };
}

/** Describe each declaration by the fields to compare. */
function told(due: readonly Due<string>[]) {
  return due.map(({ timing, from, to }) => `${timing.subject}: ${from} -> ${to}`);
}

describe("Detector.advance()", () => {
  it.each([
    [999, []],
    [1000, ["n1: HEALTHY -> UNHEALTHY"]],
    [1001, ["n1: HEALTHY -> UNHEALTHY"]],
  ])("should declare UNHEALTHY at the limit: after %d ms %j", (nowMs, expected) => {
    const { detector } = watched();

    expect(told(detector.advance(nowMs))).toEqual(expected);
  });

  it.each([
    [4999, []],
    [5000, ["n1: UNHEALTHY -> UNKNOWN"]],
    [5001, ["n1: UNHEALTHY -> UNKNOWN"]],
  ])("should declare UNKNOWN at the limit: after %d ms %j", (nowMs, expected) => {
    const { detector } = watched();
    detector.advance(1000);

    expect(told(detector.advance(nowMs))).toEqual(expected);
  });

  it("should say how long the node was silent and since when it is due", () => {
    const { detector, watch } = watched(30);

    expect(detector.advance(1150)).toEqual([
      { timing: watch, from: "HEALTHY", to: "UNHEALTHY", silentMs: 1120, deadlineMs: 1030 },
    ]);
    expect(watch.health).toBe("UNHEALTHY");
  });

  it("should declare each state once", () => {
    const { detector } = watched();

    const declared = Array.from({ length: 200 }, (_, i) => told(detector.advance(i * 100))).flat();

    expect(declared).toEqual(["n1: HEALTHY -> UNHEALTHY", "n1: UNHEALTHY -> UNKNOWN"]);
  });

  it("should declare UNKNOWN at once when silence is that long already", () => {
    const { detector } = watched();

    expect(told(detector.advance(60_000))).toEqual(["n1: HEALTHY -> UNKNOWN"]);
  });

  it("should do nothing when time did not pass", () => {
    const { detector } = watched();
    detector.advance(1000);

    expect(detector.advance(1000)).toEqual([]);
    expect(detector.advance(500)).toEqual([]);
  });

  it("should find a deadline that lies many turns of the wheel ahead", () => {
    const detector = new Detector<string>({ tickMs: 100, wheelTicks: 4 });
    detector.track("n1", { health: "HEALTHY", lastReceivedMs: 0, thresholds });

    for (let nowMs = 100; nowMs < 1000; nowMs += 100) expect(detector.advance(nowMs)).toEqual([]);
    expect(told(detector.advance(1000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
    // The node was examined three times at the far end of the wheel (after 300, 600 and 900 ms),
    // and once at the deadline.
    expect(detector.examined).toBe(4);
  });

  it("should never reach a deadline that is infinitely far", () => {
    const detector = new Detector<string>({ tickMs: 100 });
    const infinite = Number.POSITIVE_INFINITY;
    detector.track("n1", {
      health: "HEALTHY",
      lastReceivedMs: 0,
      thresholds: { unhealthyAfterMs: 1000, unknownAfterMs: infinite },
    });

    expect(told(detector.advance(1000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
    expect(detector.advance(1e9)).toEqual([]);
    expect(detector.advance(1e12)).toEqual([]);
  });

  it.each([1_050, 1_051, 1_100, 1_149])(
    "should declare a node whose deadline falls between two ticks by the next call, at %d ms",
    (nextMs) => {
      const { detector } = watched(50);

      expect(detector.advance(1_000)).toEqual([]);
      expect(detector.advance(1_049)).toEqual([]);
      expect(told(detector.advance(nextMs))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
    },
  );

  it("should not walk through the ticks of a long gap", () => {
    const { detector, watch } = watched();
    const nowMs = 1e15;

    expect(told(detector.advance(nowMs))).toEqual(["n1: HEALTHY -> UNKNOWN"]);
    expect(detector.examined).toBe(1);
    detector.declare(watch, "HEALTHY", nowMs);
    expect(told(detector.advance(nowMs + 999))).toEqual([]);
    expect(told(detector.advance(nowMs + 1000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });

  it("should watch nodes that came before the first advance, however late that is", () => {
    const detector = new Detector<string>({ tickMs: 100 });
    detector.track("n1", { health: "HEALTHY", lastReceivedMs: 1e9, thresholds });

    expect(detector.advance(1e9 + 999)).toEqual([]);
    expect(told(detector.advance(1e9 + 1000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });
});

describe("Detector.touch()", () => {
  it("should put the deadline off", () => {
    const { detector, watch } = watched();
    detector.touch(watch, 900);

    expect(detector.advance(1899)).toEqual([]);
    expect(told(detector.advance(1900))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
    expect(watch.lastReceivedMs).toBe(900);
  });

  it("should not make an UNHEALTHY node healthy, but put UNKNOWN off", () => {
    const { detector, watch } = watched();
    detector.advance(1000);
    detector.touch(watch, 2000);

    expect(watch.health).toBe("UNHEALTHY");
    expect(detector.advance(6999)).toEqual([]);
    expect(told(detector.advance(7000))).toEqual(["n1: UNHEALTHY -> UNKNOWN"]);
  });

  it("should not make an UNKNOWN node anything else", () => {
    const { detector, watch } = watched();
    detector.advance(10_000);
    detector.touch(watch, 10_000);

    expect(detector.advance(100_000)).toEqual([]);
    expect(watch.health).toBe("UNKNOWN");
  });

  it("should ignore a time that is older than the last", () => {
    const { detector, watch } = watched(500);
    detector.touch(watch, 400);

    expect(watch.lastReceivedMs).toBe(500);
  });

  it("should grant a node the time for which it was sent away, until it is revived", () => {
    const { detector, watch } = watched();
    detector.touch(watch, 3000);

    expect(detector.advance(3999)).toEqual([]);
    detector.declare(watch, "HEALTHY", 4000);
    expect(watch.lastReceivedMs).toBe(4000);
    detector.touch(watch, 9000);
    detector.declare(watch, "HEALTHY", 5000);
    expect(told(detector.advance(6000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });
});

describe("Detector.declare() of a node that is heard", () => {
  it.each([1000, 60_000])("should bring a node back that was declared at %d ms", (nowMs) => {
    const { detector, watch } = watched();
    detector.advance(nowMs);
    detector.declare(watch, "HEALTHY", nowMs + 50);

    expect(watch.health).toBe("HEALTHY");
    expect(detector.advance(nowMs + 1049)).toEqual([]);
    // The deadline was between two ticks, so the second tick declared the node.
    expect(told(detector.advance(nowMs + 1100))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });
});

describe("Detector.declare()", () => {
  it("should count UNKNOWN from a goodbye", () => {
    const { detector, watch } = watched();
    detector.declare(watch, "UNHEALTHY", 700);

    expect(watch.health).toBe("UNHEALTHY");
    expect(detector.advance(5699)).toEqual([]);
    expect(told(detector.advance(5700))).toEqual(["n1: UNHEALTHY -> UNKNOWN"]);
  });

  it("should leave an UNKNOWN node without a deadline", () => {
    const { detector, watch } = watched();
    detector.declare(watch, "UNKNOWN", 700);

    expect(detector.advance(100_000)).toEqual([]);
    expect(detector.examined).toBe(0);
  });
});

describe("Detector.track()", () => {
  it("should never declare a node that did not connect", () => {
    const detector = new Detector<string>({ tickMs: 100 });
    const never = Number.NEGATIVE_INFINITY;
    const watch = detector.track("n1", { health: "UNKNOWN", lastReceivedMs: never, thresholds });

    expect(detector.advance(1e9)).toEqual([]);
    detector.declare(watch, "HEALTHY", 1e9);
    expect(told(detector.advance(1e9 + 1000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });
});

describe("Detector.setThresholds()", () => {
  it("should apply a tighter threshold at the next tick", () => {
    const { detector, watch } = watched();
    detector.advance(600);
    detector.setThresholds(watch, { unhealthyAfterMs: 500, unknownAfterMs: 5000 });

    expect(told(detector.advance(700))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });

  it("should apply a looser threshold", () => {
    const { detector, watch } = watched();
    detector.setThresholds(watch, { unhealthyAfterMs: 2000, unknownAfterMs: 5000 });

    expect(detector.advance(1999)).toEqual([]);
    expect(told(detector.advance(2000))).toEqual(["n1: HEALTHY -> UNHEALTHY"]);
  });
});

describe("Detector.untrack()", () => {
  it("should forget the node, whatever happens to its timing afterwards", () => {
    const { detector, watch } = watched();
    detector.untrack(watch);
    detector.untrack(watch);
    detector.touch(watch, 10);
    detector.declare(watch, "HEALTHY", 20);
    detector.declare(watch, "UNHEALTHY", 30);
    detector.setThresholds(watch, { unhealthyAfterMs: 1, unknownAfterMs: 1 });

    expect(detector.size).toBe(0);
    expect(detector.advance(100_000)).toEqual([]);
    expect(watch.health).toBe("HEALTHY");
  });

  it.each([
    ["first", 0],
    ["middle", 1],
    ["last", 2],
  ])("should leave the neighbours of the %s in a bucket", (_, index) => {
    const detector = new Detector<string>({ tickMs: 100 });
    const state = { health: "HEALTHY", lastReceivedMs: 0, thresholds } as const;
    const watches = ["a", "b", "c"].map((subject) => detector.track(subject, state));
    const removed = watches[index] as Timing<string>;
    detector.untrack(removed);

    const declared = detector.advance(1000).map(({ timing }) => timing);

    expect(new Set(declared)).toEqual(new Set(watches.filter((watch) => watch !== removed)));
    expect(detector.size).toBe(2);
  });
});

describe("Detector's cost", () => {
  it("should depend on deadlines, not on ticks or beats", () => {
    const detector = new Detector<number>({ tickMs: 250 });
    const minute = { unhealthyAfterMs: 60_000, unknownAfterMs: 300_000 };
    const state = { health: "HEALTHY", lastReceivedMs: 0, thresholds: minute } as const;
    const watches = Array.from({ length: 1000 }, (_, i) => detector.track(i, state));
    for (let nowMs = 0; nowMs <= 600_000; nowMs += 250) {
      if (nowMs % 15_000 === 0) for (const watch of watches) detector.touch(watch, nowMs);
      expect(detector.advance(nowMs)).toEqual([]);
    }

    // Each beat postpones the deadline, so at least 45 s pass between two examinations of a node.
    expect(detector.examined).toBeLessThanOrEqual(1000 * Math.ceil(600 / 45));
  });
});
