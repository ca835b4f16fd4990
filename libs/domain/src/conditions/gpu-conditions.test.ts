import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { afterGpuSample, type GpuState, gpusInTrouble, gpuTroubles } from "./gpu-conditions.ts";

const LIMIT = 85;

/**
 * Evaluate samples of one GPU. Each sample is the GPU's temperature, or null if the sample does not
 * contain the GPU. Returns the GPU's troubles after the last sample, joined by commas.
 */
function evaluate(samples: readonly (number | null)[], from: readonly GpuState[] = []): string {
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
    expect(evaluate(samples)).toBe(expected);
  });

  it("should return the same array while everything is healthy", () => {
    const sample = [0, 1].map((index) => ({ index, temperatureCelsius: 50 + index }));
    const first = afterGpuSample([], sample, LIMIT);
    const warmer = sample.map(({ index }) => ({ index, temperatureCelsius: 70 }));
    expect(afterGpuSample(first, warmer, LIMIT)).toBe(first);
    expect(afterGpuSample(first, sample, null)).toBe(first);
  });

  it("should need three consecutive samples for each change of state, whatever they contain", () => {
    const sample = fc.option(fc.constantFrom(60, 82, 90), { nil: null });
    fc.assert(
      fc.property(fc.array(sample, { maxLength: 60 }), (samples) => {
        let gpus: readonly GpuState[] = [];
        let sinceChange = 3;
        let decision = "";
        for (const celsius of [60, ...samples]) {
          const readings = celsius === null ? [] : [{ index: 0, temperatureCelsius: celsius }];
          gpus = afterGpuSample(gpus, readings, LIMIT);
          const is = gpus.map(({ isGone }) => isGone).join();
          sinceChange += 1;
          if (decision !== "" && is !== decision) {
            expect(sinceChange).toBeGreaterThanOrEqual(3);
            sinceChange = 0;
          }
          decision = is;
        }
      }),
    );
  });
});

describe("gpusInTrouble()", () => {
  it("should continue from the recorded troubles", () => {
    const recorded = gpuTroubles(
      [90, 90, 90].reduce<readonly GpuState[]>(
        (state, temperatureCelsius) => afterGpuSample(state, [{ index: 0, temperatureCelsius }], LIMIT),
        [],
      ),
      LIMIT,
    );
    const taken = gpusInTrouble(recorded);
    expect(evaluate([], taken)).toBe("GPU_TOO_HOT");
    expect(evaluate([82, 82, 82], taken)).toBe("GPU_TOO_HOT");
    expect(evaluate([70, 70, 70], taken)).toBe("");
  });
});
