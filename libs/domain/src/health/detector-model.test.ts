import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Thresholds } from "../policy/policy.ts";
import type { HealthState } from "../states.ts";
import { Detector, type Timing } from "./detector.ts";

const TICK_MS = 10;

/** A node in the model, which always scans all nodes. */
interface Scanned {
  health: HealthState;
  lastReceivedMs: number;
  thresholds: Thresholds;
  /**
   * When the node was last tracked, declared or given new thresholds. A silence that had already exceeded the threshold
   * at this time is declared at the next tick.
   */
  setAtMs: number;
  watch: Timing<number>;
}

type Step =
  | { readonly kind: "watch"; readonly health: HealthState; readonly thresholds: Thresholds }
  | { readonly kind: "touch" | "revive" | "goodbye" | "unwatch"; readonly node: number }
  | { readonly kind: "thresholds"; readonly node: number; readonly thresholds: Thresholds }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "advance" };

const anyThresholds = fc
  .tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 900 }))
  .map(([unhealthyAfterMs, moreMs]) => ({
    unhealthyAfterMs,
    unknownAfterMs: unhealthyAfterMs + moreMs,
  }));
const anyHealth = fc.constantFrom<HealthState>("HEALTHY", "UNHEALTHY", "UNKNOWN");
const anyNode = fc.nat({ max: 30 });
const anyMs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 40 }) },
  { weight: 2, arbitrary: fc.double({ min: 0, max: 200, noNaN: true }) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 5000 }) },
);
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("watch" as const),
      health: anyHealth,
      thresholds: anyThresholds,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("touch" as const), node: anyNode }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("revive" as const, "goodbye" as const, "unwatch" as const),
      node: anyNode,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("thresholds" as const),
      node: anyNode,
      thresholds: anyThresholds,
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: anyMs }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("advance" as const) }) },
);

/**
 * Runs the detector in parallel with a model that scans all nodes, and checks invariants after each advance.
 */
class Comparison {
  readonly #detector: Detector<number>;
  readonly #nodes: Scanned[] = [];
  #watched = 0;
  #nowMs: number;

  constructor(wheelTicks: number, startMs: number) {
    this.#detector = new Detector({ tickMs: TICK_MS, wheelTicks });
    this.#nowMs = startMs;
  }

  run(step: Step): void {
    switch (step.kind) {
      case "watch":
        this.#watch(step.health, step.thresholds);
        return;
      case "pass":
        this.#nowMs += step.ms;
        return;
      case "advance":
        this.#advance();
        return;
      case "touch":
      case "revive":
      case "goodbye":
      case "unwatch":
      case "thresholds": {
        const node = this.#nodes[step.node % this.#nodes.length];
        if (node !== undefined) this.#change(node, step);
      }
    }
  }

  /** Check that every node becomes UNKNOWN if it is silent for long enough, whatever happened before. */
  finish(): void {
    this.#nowMs += 10_000;
    this.#advance();
    for (const { health } of this.#nodes) expect(health).toBe("UNKNOWN");
  }

  #watch(health: HealthState, thresholds: Thresholds): void {
    const state = { health, thresholds, lastReceivedMs: this.#nowMs };
    const watch = this.#detector.track(this.#watched, state);
    this.#watched += 1;
    this.#nodes.push({ ...state, watch, setAtMs: this.#nowMs });
  }

  #change(node: Scanned, step: Extract<Step, { node: number }>): void {
    const nowMs = this.#nowMs;
    switch (step.kind) {
      case "touch":
        this.#detector.touch(node.watch, nowMs);
        node.lastReceivedMs = nowMs;
        return;
      case "revive":
        this.#detector.declare(node.watch, "HEALTHY", nowMs);
        Object.assign(node, { health: "HEALTHY", lastReceivedMs: nowMs, setAtMs: nowMs });
        return;
      case "goodbye":
        this.#detector.declare(node.watch, "UNHEALTHY", nowMs);
        Object.assign(node, { health: "UNHEALTHY", lastReceivedMs: nowMs, setAtMs: nowMs });
        return;
      case "thresholds":
        this.#detector.setThresholds(node.watch, step.thresholds);
        Object.assign(node, { thresholds: step.thresholds, setAtMs: nowMs });
        return;
      case "unwatch":
        this.#detector.untrack(node.watch);
        this.#nodes.splice(this.#nodes.indexOf(node), 1);
    }
  }

  #advance(): void {
    const nowMs = this.#nowMs;
    for (const { timing, from, to, silentMs, deadlineMs } of this.#detector.advance(nowMs)) {
      const node = this.#nodes.find((candidate) => candidate.watch === timing);
      // Check that only tracked nodes are declared, at most once per state and not too early.
      if (node === undefined) throw new Error(`node ${timing.subject} is not watched`);
      expect(from).toBe(node.health);
      expect(to).not.toBe(node.health);
      expect(deadlineMs).toBe(deadlineOf(node, to));
      expect(nowMs).toBeGreaterThanOrEqual(deadlineMs);
      expect(silentMs).toBe(nowMs - node.lastReceivedMs);
      node.health = to;
    }
    for (const node of this.#nodes) this.#checkNotLate(node);
    expect(this.#detector.size).toBe(this.#nodes.length);
  }

  #checkNotLate(node: Scanned): void {
    expect(node.watch.health).toBe(node.health);
    expect(node.watch.lastReceivedMs).toBe(node.lastReceivedMs);
    if (node.health === "UNKNOWN") return;
    const next = node.health === "HEALTHY" ? "UNHEALTHY" : "UNKNOWN";
    const latestMs = Math.max(deadlineOf(node, next), node.setAtMs) + TICK_MS;
    expect(this.#nowMs).toBeLessThan(latestMs + ROUNDING_MS);
  }
}

/** Tolerance for the accumulated rounding errors of fractional milliseconds. */
const ROUNDING_MS = 1e-6;

function deadlineOf(node: Scanned, to: "UNHEALTHY" | "UNKNOWN"): number {
  const { unhealthyAfterMs, unknownAfterMs } = node.thresholds;
  return node.lastReceivedMs + (to === "UNHEALTHY" ? unhealthyAfterMs : unknownAfterMs);
}

describe("Detector compared with a scan of all nodes", () => {
  it("should declare no node early, and none later than a tick", () => {
    const wheelTicks = fc.constantFrom(1, 2, 7, 16, 64, 1024);
    const startMs = fc.constantFrom(0, 3, 12_345.678, 1e9);
    const steps = fc.array(anyStep, { minLength: 20, maxLength: 300 });
    fc.assert(
      fc.property(wheelTicks, startMs, steps, (ticks, start, schedule) => {
        const comparison = new Comparison(ticks, start);
        for (const step of schedule) comparison.run(step);
        comparison.finish();
      }),
      { numRuns: 300 },
    );
  });
});
