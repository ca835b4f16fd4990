import { describe, expect, it } from "@jest/globals";
import { computeSizing, fitSizing, formatSizing, measuredSizing, type SizedFleet } from "./sizing-formula.ts";

const GIB = 1_073_741_824;
const MIB = 1_048_576;

/** A fleet whose costs the formula can express exactly. */
const fleet = (agents: number, replicas: number): SizedFleet => ({
  agents,
  replicas,
  replicaCores: replicas * 0.02 + agents * 0.000_005,
  replicaBytes: replicas * 0.1 * GIB + agents * 45_056,
  postgresCores: 0.01 + agents * 0.000_000_2,
  walBytesPerSecond: 100 + agents * 0.01,
  databaseBytes: 10 * MIB + agents * 4_096,
  reconnectMsEach: 2 + replicas * 0.2,
});

describe("computeSizing()", () => {
  it("should compute the costs of other sizes from two measured ones", () => {
    const formula = fitSizing([fleet(1_000, 1), fleet(20_000, 2)]);
    const row = computeSizing(formula, 150_000);
    expect(row).toMatchObject({ agents: 150_000, replicas: 10, isMeasured: false });
    expect(row.cores).toBeCloseTo(0.95);
    expect(row.gibEach).toBeCloseTo(0.1 + (15_000 * 45_056) / GIB);
    expect(row.postgresCores).toBeCloseTo(0.04);
    expect(row.databaseMib).toBeCloseTo(10 + (150_000 * 4_096) / MIB);
    expect(row.comeInMinutes).toBeCloseTo((150_000 * 4) / 2 / 60_000);
  });

  it("should not make a large fleet cheaper than a small one because of noise", () => {
    const formula = fitSizing([
      { ...fleet(1_000, 1), postgresCores: 0.05 },
      { ...fleet(10_000, 1), postgresCores: 0.04 },
    ]);
    expect(formula.postgresCores).toEqual({ fixed: 0.045, each: 0 });
  });

  it("should start at zero if the fitted line would start below zero", () => {
    const formula = fitSizing([
      { ...fleet(1_000, 1), postgresCores: 0 },
      { ...fleet(3_000, 1), postgresCores: 0.4 },
    ]);
    expect(formula.postgresCores).toEqual({ fixed: 0, each: 0.000_1 });
  });
});

describe("formatSizing()", () => {
  it("should mark computed rows", () => {
    const formula = fitSizing([fleet(1_000, 1), fleet(20_000, 2)]);
    const lines = formatSizing([measuredSizing(fleet(1_000, 1)), computeSizing(formula, 30_000)]).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[2]).toMatch(/^\| 1,000 \| 1 \|/);
    expect(lines[3]).toMatch(/^\| 30,000 \(computed\) \| 2 \|/);
  });
});
