import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Json } from "../events/events.ts";
import { AMOUNTS_REST_MS, changeOfReport, isJitter, SteadyAmounts } from "./info-amounts.ts";

const GIB = 2 ** 30;

function report(memoryGib: number, numaGib: readonly number[] = [], more: object = {}): Json {
  const numaNodes = numaGib.map((gib, id) => ({ id, cpus: "0-7", memoryBytes: `${gib * GIB}` }));
  return { hostname: "h", memoryBytes: `${memoryGib * GIB}`, numaNodes, ...more } as Json;
}

describe("changeOfReport()", () => {
  it.each([
    ["the same", report(64, [32, 32]), report(64, [32, 32]), "none"],
    ["keys in another order", { a: 1, b: [{ c: 1, d: 2 }] }, { b: [{ d: 2, c: 1 }], a: 1 }, "none"],
    ["memory within 2 %", report(64), report(62.73), "jitter"],
    ["memory beyond 2 %", report(64), report(62.5), "amounts"],
    ["memory beyond 2 % upwards", report(64), report(65.5), "amounts"],
    ["a NUMA node within 10 %", report(64, [32, 32]), report(64, [29, 32]), "jitter"],
    ["a NUMA node beyond 10 %", report(64, [32, 32]), report(64, [28, 32]), "amounts"],
    ["the disk within 2 %", report(1, [], { diskBytes: "1000" }), report(1, [], { diskBytes: "980" }), "jitter"],
    ["a NUMA node that is gone", report(64, [32, 32]), report(64, [32]), "facts"],
    ["memory that is reported at last", { hostname: "h" }, { hostname: "h", memoryBytes: "1" }, "facts"],
    ["another name", report(64), report(64, [], { hostname: "g" }), "facts"],
    ["another name and jitter", report(64), report(63.9, [], { hostname: "g" }), "facts"],
    ["another label", report(64, [], { labels: { a: "1" } }), report(64, [], { labels: { a: "2" } }), "facts"],
    ["a first report", null, report(64), "facts"],
  ] as const)("should report %s", (_, before, after, change) => {
    expect(changeOfReport(before as Json, after as Json)).toBe(change);
  });
});

describe("isJitter()", () => {
  it("should never take a loss for jitter that hardware conditions would report", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 40 }), fc.double({ min: 0, max: 1, noNaN: true }), (memory, part) => {
        const left = Math.floor(memory * part);
        const jitter = isJitter(new Map([["memory", memory]]), new Map([["memory", left]]));
        if (jitter) expect(left).toBeGreaterThanOrEqual(memory * 0.98);
      }),
    );
  });
});

describe("SteadyAmounts", () => {
  const of = (memoryGib: number) => new Map([["memory", memoryGib * GIB]]);

  it("should report a balloon's first move at once, and then one in ten minutes", () => {
    const steady = new SteadyAmounts();
    const told = new Set<number>();
    for (let minute = 0; minute < 60; minute += 1) {
      const memory = 64 - 8 * (minute % 5);
      told.add(steady.take(of(memory), minute * 60_000).get("memory") ?? 0);
    }
    expect(steady.take(of(64), 0)).toBeDefined();
    expect(told.size).toBeLessThanOrEqual(6);
  });

  it("should change at most every ten minutes, and never for what moves by little", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 200 }), (readings) => {
        const steady = new SteadyAmounts();
        let told = steady.take(of(readings[0] ?? 1), 0);
        let changedAtMs = Number.NEGATIVE_INFINITY;
        readings.forEach((gib, minute) => {
          const next = steady.take(of(gib), minute * 60_000);
          if (next === told) return;
          expect(isJitter(told, next)).toBe(false);
          expect(minute * 60_000 - changedAtMs).toBeGreaterThanOrEqual(AMOUNTS_REST_MS);
          [told, changedAtMs] = [next, minute * 60_000];
        });
      }),
    );
  });

  it("should compare with the value last reported, not the one last read: a slow drift is reported eventually", () => {
    const steady = new SteadyAmounts();
    steady.take(of(100), 0);
    const told = Array.from({ length: 10 }, (_, at) => steady.take(of(100 - at * 0.5), at * 60_000).get("memory"));
    expect(new Set(told.slice(0, 5))).toEqual(new Set([100 * GIB]));
    expect(told[5]).toBe(97.5 * GIB);
  });

  it("should report at once what came and went", () => {
    const steady = new SteadyAmounts();
    steady.take(
      new Map([
        ["memory", 1],
        ["numa 0", 1],
      ]),
      0,
    );
    expect(steady.take(new Map([["memory", 1]]), 1).size).toBe(1);
    expect(
      steady.take(
        new Map([
          ["memory", 1],
          ["numa 0", 1],
        ]),
        2,
      ).size,
    ).toBe(2);
  });
});
