import { describe, expect, it } from "@jest/globals";
import { type HealthChange, healthOverTime } from "./health-history.ts";

const changed = (atMs: number, before: string, after: string): HealthChange => ({ id: "n", atMs, before, after });
const span = { fromMs: 0, nowMs: 9_600 };

describe("healthOverTime()", () => {
  it("should be level while nothing changes", () => {
    const points = healthOverTime({ HEALTHY: 3, UNKNOWN: 1 }, [], span);
    expect(points.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 97 }, (_, at) => at * 100));
    expect(new Set(points.map(({ well, unwell }) => `${well} ${unwell}`))).toEqual(new Set(["3 1"]));
  });

  it("should undo changes, latest first, and end with the current state", () => {
    const changes = [
      changed(1_000, "UNKNOWN", "HEALTHY"),
      changed(5_000, "HEALTHY", "UNHEALTHY"),
      changed(6_050, "UNHEALTHY", "UNKNOWN"),
      changed(9_550, "UNKNOWN", "HEALTHY"),
    ];
    const points = healthOverTime({ HEALTHY: 2 }, changes, span);
    const at = (atMs: number) => points.find((point) => point.atMs === atMs);
    expect(at(900)).toMatchObject({ well: 1, unwell: 1 });
    expect(at(1_000)).toMatchObject({ well: 2, unwell: 0 });
    expect(at(4_900)).toMatchObject({ well: 2, unwell: 0 });
    expect(at(9_500)).toMatchObject({ well: 1, unwell: 1 });
    expect(points.at(-1)).toEqual({ atMs: 9_600, well: 2, unwell: 0 });
  });

  it("should have a gap before the first machine joined, and count none before it existed", () => {
    const changes = [changed(5_000, "", "UNKNOWN"), changed(6_000, "UNKNOWN", "HEALTHY")];
    const points = healthOverTime({ HEALTHY: 1 }, changes, span);
    const seen = [4_900, 5_000, 6_000].map((atMs) => points.find((point) => point.atMs === atMs));
    expect(seen).toMatchObject([
      { well: null, unwell: null },
      { well: 0, unwell: 1 },
      { well: 1, unwell: 0 },
    ]);
    // Another machine is older, so the first counts are known.
    const [first] = healthOverTime({ HEALTHY: 2 }, changes, span);
    expect(first).toMatchObject({ well: 1, unwell: 0 });
  });

  it("should have a gap before the first change that the log has", () => {
    const points = healthOverTime({ HEALTHY: 1 }, [], { ...span, knownFromMs: 4_850 });
    expect(points.filter(({ well, unwell }) => well === null && unwell === null).map(({ atMs }) => atMs)).toEqual(
      Array.from({ length: 49 }, (_, at) => at * 100),
    );
    expect(points.find(({ atMs }) => atMs === 4_900)).toMatchObject({ well: 1, unwell: 0 });
  });

  it("should never count below zero", () => {
    const [first] = healthOverTime({ HEALTHY: 0 }, [changed(5, "UNKNOWN", "HEALTHY")], span);
    expect(first).toMatchObject({ well: 0, unwell: 1 });
  });
});
