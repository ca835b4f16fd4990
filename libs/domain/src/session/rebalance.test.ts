import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  chooseTarget,
  DEFAULT_REBALANCE_LIMITS,
  planMoves,
  type RebalanceView,
  type ReplicaLoad,
} from "./rebalance.ts";

const limits = DEFAULT_REBALANCE_LIMITS;

function loadsOf(...sessions: readonly number[]): readonly ReplicaLoad[] {
  return sessions.map((count, index) => ({
    instance: `r${index}`,
    endpoint: `host${index}:7701`,
    sessions: count,
  }));
}

function viewOf(loads: readonly ReplicaLoad[], more: Partial<RebalanceView> = {}): RebalanceView {
  return { own: "r0", loads, leaving: 0, isMoving: false, elapsedMs: 1_000, ...more };
}

describe("planMoves()", () => {
  it.each<[string, readonly number[], Partial<RebalanceView>, string, number]>([
    ["no other replica", [1_000], {}, "ALONE", 0],
    ["not even listed", [5, 5], { own: "r9" }, "ALONE", 0],
    ["even", [1_000, 1_000], {}, "WITHIN_TOLERANCE", 0],
    ["at the tolerance", [1_100, 900], {}, "WITHIN_TOLERANCE", 0],
    ["just above it", [1_101, 899], {}, "SURPLUS", 11],
    ["going on below it", [1_050, 950], { isMoving: true }, "SURPLUS", 10],
    ["done", [1_000, 1_000], { isMoving: true }, "WITHIN_TOLERANCE", 0],
    ["too few", [500, 1_500], {}, "NO_SURPLUS", 0],
    ["a small fleet", [18, 0], {}, "WITHIN_TOLERANCE", 0],
    ["a small fleet that is uneven", [40, 0], {}, "SURPLUS", 5],
    ["enough on their way", [1_200, 800], { leaving: 200 }, "SURPLUS", 0],
    ["a few on their way", [1_200, 800], { leaving: 195 }, "SURPLUS", 5],
    ["many, all at once", [20_000, 0], {}, "SURPLUS", 50],
    ["after a longer rest", [20_000, 0], { elapsedMs: 2_000 }, "SURPLUS", 100],
  ])("should know what to do when it is %s", (_, sessions, more, reason, moves) => {
    const plan = planMoves(viewOf(loadsOf(...sessions), more), limits);
    // Sessions that are already moving do not count towards the surplus.
    expect(plan).toMatchObject(moves === 0 ? { moves } : { reason, moves });
    if (more.leaving === undefined) expect(plan.reason).toBe(reason);
  });

  it("should fill one of many replicas although none of the others is far above its share", () => {
    const loads = loadsOf(...Array.from({ length: 20 }, () => 1_000), 0);
    expect(planMoves(viewOf(loads), limits)).toMatchObject({ reason: "SURPLUS", moves: 10 });
  });

  it("should name where there is room, and nothing where all have one address", () => {
    const { targets } = planMoves(viewOf(loadsOf(900, 300, 0)), limits);
    expect(targets).toEqual([
      { endpoint: "host1:7701", room: 100 },
      { endpoint: "host2:7701", room: 400 },
    ]);
    const shared = loadsOf(900, 300, 0).map((load) => ({ ...load, endpoint: "one:7701" }));
    expect(planMoves(viewOf(shared), limits).targets).toEqual([]);
  });
});

describe("chooseTarget()", () => {
  const targets = [
    { endpoint: "a", room: 100 },
    { endpoint: "b", room: 300 },
  ];
  it.each([
    [0, "a"],
    [0.2499, "a"],
    [0.25, "b"],
    [0.9999, "b"],
  ])("should choose by room: %d", (random01, endpoint) => {
    expect(chooseTarget(targets, random01)).toBe(endpoint);
  });
  it("should choose nothing where there is nothing to choose", () => {
    expect(chooseTarget([], 0.5)).toBeNull();
  });
});

/**
 * Simulates replicas that plan once per second, from loads that are up to three seconds old. A move takes a second or
 * two.
 */
class Fleet {
  readonly counts: number[];
  readonly #random: () => number;
  readonly #shared: boolean;
  readonly #moving: boolean[];
  readonly #history: number[][] = [];
  /**
   * Moves in progress, with the time and the replica of their arrival. `to` is -1 if a load balancer chooses the
   * replica.
   */
  readonly #landing: { readonly atS: number; readonly from: number; readonly to: number }[] = [];
  moves = 0;
  #nowS = 0;

  constructor(counts: readonly number[], shared: boolean, random: () => number) {
    this.counts = [...counts];
    this.#shared = shared;
    this.#random = random;
    this.#moving = counts.map(() => false);
  }

  second(): void {
    this.#nowS += 1;
    this.#history.push([...this.counts]);
    this.#land();
    for (const own of this.counts.keys()) this.#plan(own);
  }

  #plan(own: number): void {
    const leaving = this.#landing.filter(({ from }) => from === own).length;
    const loads = this.counts.map((sessions, index) => ({
      instance: `r${index}`,
      endpoint: this.#shared ? "one" : `e${index}`,
      sessions: index === own ? sessions : this.#seen(index),
    }));
    const plan = planMoves(
      { own: `r${own}`, loads, leaving, isMoving: this.#moving[own] ?? false, elapsedMs: 1_000 },
      limits,
    );
    this.#moving[own] = plan.reason === "SURPLUS";
    for (let move = 0; move < plan.moves; move++) {
      const target = chooseTarget(plan.targets, this.#random());
      const to = target === null ? -1 : Number(target.slice(1));
      this.#landing.push({ atS: this.#nowS + 1 + Math.floor(this.#random() * 2), from: own, to });
      this.moves += 1;
    }
  }

  #seen(index: number): number {
    const ageS = Math.floor(this.#random() * 4);
    const then = this.#history[Math.max(0, this.#history.length - 1 - ageS)];
    return then?.[index] ?? 0;
  }

  #land(): void {
    const due = this.#landing.filter(({ atS }) => atS <= this.#nowS);
    for (const landing of due) {
      this.#landing.splice(this.#landing.indexOf(landing), 1);
      const anywhere = Math.floor(this.#random() * this.counts.length);
      const to = landing.to < 0 ? anywhere : landing.to;
      this.counts[landing.from] = (this.counts[landing.from] ?? 0) - 1;
      this.counts[to] = (this.counts[to] ?? 0) + 1;
    }
  }
}

/** Create a separate random generator, so that the seed of a failed run reproduces the run. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const MOST_SECONDS = 600;
const QUIET_SECONDS = 60;

describe("replicas that rebalance", () => {
  it.each([
    ["addresses of their own", false],
    ["one address for all", true],
  ])("should come to their fair shares, and then rest, with %s", (_, shared) => {
    const fleets = fc.tuple(fc.array(fc.integer({ min: 0, max: 1_500 }), { minLength: 2, maxLength: 8 }), fc.integer());
    fc.assert(
      fc.property(fleets, ([counts, seed]) => {
        const fleet = new Fleet(counts, shared, randomOf(seed));
        const total = counts.reduce((sum, count) => sum + count, 0);
        const share = total / counts.length;
        let quiet = 0;
        let seconds = 0;
        while (quiet < QUIET_SECONDS && seconds < MOST_SECONDS) {
          const before = fleet.moves;
          fleet.second();
          seconds += 1;
          quiet = fleet.moves === before ? quiet + 1 : 0;
        }
        expect(quiet).toBe(QUIET_SECONDS);
        expect(fleet.counts.reduce((sum, count) => sum + count, 0)).toBe(total);
        const tolerance = Math.max(10, share * 0.1, 3 * Math.sqrt(share)) + 1;
        for (const count of fleet.counts) {
          expect(Math.abs(count - share)).toBeLessThanOrEqual(tolerance);
        }
        // Allow only slightly more moves than the imbalance requires. A shared address needs more moves, because a move
        // can arrive at the replica that it came from.
        const uneven = counts.reduce((sum, count) => sum + Math.max(0, count - share), 0);
        const factor = shared ? counts.length * 3 : 1.5;
        expect(fleet.moves).toBeLessThanOrEqual(uneven * factor + 100);
      }),
      { numRuns: 60 },
    );
  });
});

describe("planMoves(), what counts", () => {
  const FIVE = [960, 960, 960, 960, 960] as const;

  it("should take off what leaves from the own sessions, and from no others", () => {
    const loads = loadsOf(1_200, ...FIVE);
    expect(planMoves(viewOf(loads, { leaving: 150 }), limits)).toEqual({
      ...{ reason: "WITHIN_TOLERANCE", moves: 0, fairShare: 1_000, targets: [] },
    });
    expect(planMoves(viewOf(loads, { leaving: 99 }), limits)).toMatchObject({ reason: "SURPLUS" });
  });

  it.each<[readonly number[], string]>([
    [[130, 70], "WITHIN_TOLERANCE"],
    [[131, 69], "SURPLUS"],
    [[1_000, 1_500, 500], "NO_SURPLUS"],
  ])("should distinguish chance from surplus: %j is %s", (sessions, reason) => {
    expect(planMoves(viewOf(loadsOf(...sessions)), limits).reason).toBe(reason);
  });

  it("should name only where there is room", () => {
    expect(planMoves(viewOf(loadsOf(1_300, 1_000, 700)), limits).targets).toEqual([
      { endpoint: "host2:7701", room: 300 },
    ]);
  });
});
