import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { afterGpuSample, type GpuState, gpusInTrouble, gpuTroubles } from "./gpu-conditions.ts";

const LIMIT = 85;

/** Samples of one GPU each: its temperature, or null for a sample without it. */
function judge(samples: readonly (number | null)[], from: readonly GpuState[] = []): string {
  const gpus = samples.reduce<readonly GpuState[]>(
    (state, celsius) =>
      afterGpuSample(state, celsius === null ? [] : [{ index: 0, temperatureCelsius: celsius }], LIMIT),
    from,
  );
  return gpuTroubles(gpus, LIMIT)
    .map(({ kind }) => kind)
    .join();
}

describe("afterGpuSample()", () => {
  it.each<[string, readonly (number | null)[], string]>([
    ["cool samples", [60, 60, 60], ""],
    ["samples at the limit", [85, 85, 85, 85], ""],
    ["two hot samples", [86, 86], ""],
    ["three hot samples", [86, 86, 86], "GPU_TOO_HOT"],
    ["hot samples that are interrupted", [86, 86, 60, 86, 86], ""],
    ["a little below the limit afterwards", [86, 86, 86, 81, 81, 81, 81], "GPU_TOO_HOT"],
    ["five degrees below for two samples", [86, 86, 86, 80, 80], "GPU_TOO_HOT"],
    ["five degrees below for three samples", [86, 86, 86, 80, 80, 80], ""],
    ["samples without it", [60, null, null], ""],
    ["three samples without it", [60, null, null, null], "GPU_GONE"],
    ["its return", [60, null, null, null, 60, 60, 60], ""],
  ])("should decide on %s", (_, samples, expected) => {
    expect(judge(samples)).toBe(expected);
  });

  it("should answer the same array while all is well", () => {
    const sample = [0, 1].map((index) => ({ index, temperatureCelsius: 50 + index }));
    const first = afterGpuSample([], sample, LIMIT);
    const warmer = sample.map(({ index }) => ({ index, temperatureCelsius: 70 }));
    expect(afterGpuSample(first, warmer, LIMIT)).toBe(first);
    expect(afterGpuSample(first, sample, null)).toBe(first);
  });

  it("should need three samples in a row for each change of mind, whatever they say", () => {
    const sample = fc.option(fc.constantFrom(60, 82, 90), { nil: null });
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 60 }), (samples) => {
        let gpus: readonly GpuState[] = [];
        let sinceChange = 3;
        let verdict = "";
        for (const celsius of [60, ...samples]) {
          const readings = celsius === null ? [] : [{ index: 0, temperatureCelsius: celsius }];
          gpus = afterGpuSample(gpus, readings, LIMIT);
          const is = gpus.map(({ isGone }) => isGone).join();
          sinceChange += 1;
          if (verdict !== "" && is !== verdict) {
            expect(sinceChange).toBeGreaterThanOrEqual(3);
            sinceChange = 0;
          }
          verdict = is;
        }
      }),
    );
  });
});

describe("gpusInTrouble()", () => {
  it("should go on from what was recorded", () => {
    const recorded = gpuTroubles(
      [90, 90, 90].reduce<readonly GpuState[]>(
        (state, temperatureCelsius) => afterGpuSample(state, [{ index: 0, temperatureCelsius }], LIMIT),
        [],
      ),
      LIMIT,
    );
    const taken = gpusInTrouble(recorded);
    expect(judge([], taken)).toBe("GPU_TOO_HOT");
    expect(judge([82, 82, 82], taken)).toBe("GPU_TOO_HOT");
    expect(judge([70, 70, 70], taken)).toBe("");
  });
});
