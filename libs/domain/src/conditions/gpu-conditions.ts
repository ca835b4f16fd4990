import type { Trouble } from "./hardware-conditions.ts";

/** The state of one GPU, derived from a node's samples. */
export interface GpuState {
  readonly index: number;
  readonly isGone: boolean;
  readonly isHot: boolean;
  /** The last reported temperature; null for none. */
  readonly celsius: number | null;
  /** Number of consecutive samples that contradict `isGone`. */
  readonly presenceDoubts: number;
  /** Number of consecutive samples that contradict `isHot`. */
  readonly heatDoubts: number;
}

/** One GPU in one sample. */
export interface GpuReading {
  readonly index: number;
  /** Absent if the driver does not report it. */
  readonly temperatureCelsius?: number | undefined;
}

/** How many samples in a row change the state of a GPU. A single sample can be an outlier. */
export const SAMPLES_TO_CONVINCE = 3;
/** How far below the limit a GPU that was too hot must cool down to count as healthy again, in degrees Celsius. */
const HYSTERESIS_CELSIUS = 5;

/**
 * Process a sample. New GPUs are added; a known GPU that is not in the sample may be gone. Returns the same array if
 * nothing changes except normal temperatures.
 *
 * @param maxCelsius temperature above which a GPU is too hot; null for no limit.
 */
export function afterGpuSample(
  gpus: readonly GpuState[],
  sample: readonly GpuReading[],
  maxCelsius: number | null,
): readonly GpuState[] {
  if (isQuiet(gpus, sample, maxCelsius)) return gpus;
  const next = gpus.map((gpu) => {
    const reading = sample.find(({ index }) => index === gpu.index);
    return afterReading(gpu, reading ?? null, maxCelsius);
  });
  const known = new Set(gpus.map(({ index }) => index));
  for (const reading of sample) {
    if (known.has(reading.index)) continue;
    known.add(reading.index);
    next.push(afterReading(newGpu(reading.index), reading, maxCelsius));
  }
  const isSame = next.length === gpus.length && next.every((gpu, at) => gpu === gpus[at]);
  return isSame ? gpus : next;
}

/** The troubles of these GPUs. */
export function gpuTroubles(gpus: readonly GpuState[], maxCelsius: number | null): readonly Trouble[] {
  return gpus.flatMap(({ index, isGone, isHot, celsius }): readonly Trouble[] => {
    const part = `gpu ${index}`;
    if (isGone) {
      return [{ kind: "GPU_GONE", part, message: `GPU ${index} is gone from the node's samples` }];
    }
    if (!isHot) return [];
    const degrees = celsius === null ? "" : ` at ${Math.round(celsius)} °C`;
    const limit = maxCelsius === null ? "" : `, more than ${maxCelsius} °C`;
    return [{ kind: "GPU_TOO_HOT", part, message: `GPU ${index} is too hot${degrees}${limit}` }];
  });
}

/**
 * The state of GPUs before the first sample, from recorded troubles. A replica that takes over a node starts from
 * this state. Otherwise a change of owner would end every trouble without a sample.
 */
export function gpusInTrouble(troubles: readonly Trouble[]): readonly GpuState[] {
  const gpus = new Map<number, GpuState>();
  for (const { kind, part } of troubles) {
    const index = Number(/^gpu (\d+)$/.exec(part)?.[1] ?? Number.NaN);
    if (Number.isNaN(index) || kind === "HARDWARE_DEGRADED") continue;
    const gpu = gpus.get(index) ?? newGpu(index);
    gpus.set(index, {
      ...gpu,
      isGone: gpu.isGone || kind === "GPU_GONE",
      isHot: gpu.isHot || kind === "GPU_TOO_HOT",
    });
  }
  return [...gpus.values()];
}

/** Whether all GPUs are present and healthy, as in nearly every sample. This check allocates nothing. */
function isQuiet(gpus: readonly GpuState[], sample: readonly GpuReading[], maxCelsius: number | null): boolean {
  if (gpus.length !== sample.length) return false;
  for (let at = 0; at < gpus.length; at++) {
    const gpu = gpus[at];
    const reading = sample[at];
    if (gpu === undefined || reading === undefined || gpu.index !== reading.index) return false;
    if (gpu.isGone || gpu.isHot || gpu.presenceDoubts > 0 || gpu.heatDoubts > 0) return false;
    if (isTooHot(false, reading.temperatureCelsius ?? null, maxCelsius)) return false;
  }
  return true;
}

function newGpu(index: number): GpuState {
  return {
    index,
    isGone: false,
    isHot: false,
    celsius: null,
    presenceDoubts: 0,
    heatDoubts: 0,
  };
}

function afterReading(gpu: GpuState, reading: GpuReading | null, maxCelsius: number | null): GpuState {
  const presence = convince(gpu.isGone, reading === null, gpu.presenceDoubts);
  // Keep the heat state of a GPU that is missing, or whose temperature is not reported.
  const celsius = reading?.temperatureCelsius ?? null;
  const heat =
    celsius === null && maxCelsius !== null
      ? { is: gpu.isHot, doubts: gpu.heatDoubts }
      : convince(gpu.isHot, isTooHot(gpu.isHot, celsius, maxCelsius), gpu.heatDoubts);
  const isWell = !presence.is && !heat.is && presence.doubts === 0 && heat.doubts === 0;
  const isSame =
    presence.is === gpu.isGone &&
    heat.is === gpu.isHot &&
    presence.doubts === gpu.presenceDoubts &&
    heat.doubts === gpu.heatDoubts;
  // Keep the object if only a normal temperature changed, so that most samples allocate nothing.
  if (isSame && (isWell || celsius === gpu.celsius)) return gpu;
  return {
    index: gpu.index,
    isGone: presence.is,
    isHot: heat.is,
    celsius: celsius ?? gpu.celsius,
    presenceDoubts: presence.doubts,
    heatDoubts: heat.doubts,
  };
}

function isTooHot(isHot: boolean, celsius: number | null, maxCelsius: number | null): boolean {
  if (maxCelsius === null || celsius === null) return false;
  return isHot ? celsius > maxCelsius - HYSTERESIS_CELSIUS : celsius > maxCelsius;
}

function convince(is: boolean, says: boolean, doubts: number): { is: boolean; doubts: number } {
  if (is === says) return { is, doubts: 0 };
  return doubts + 1 >= SAMPLES_TO_CONVINCE ? { is: says, doubts: 0 } : { is, doubts: doubts + 1 };
}
