import type { Trouble } from "./hardware-conditions.ts";

/** What the samples of a node have said of one GPU. */
export interface GpuState {
  readonly index: number;
  readonly isGone: boolean;
  readonly isHot: boolean;
  /** The temperature that was last reported; null for none. */
  readonly celsius: number | null;
  /** Samples in a row that speak against `isGone`. */
  readonly presenceDoubts: number;
  /** Samples in a row that speak against `isHot`. */
  readonly heatDoubts: number;
}

/** What one sample says of one GPU. */
export interface GpuReading {
  readonly index: number;
  /** Absent where the driver does not tell. */
  readonly temperatureCelsius?: number | undefined;
}

/** One sample is an accident: this many in a row change what is thought of a GPU. */
export const SAMPLES_TO_CONVINCE = 3;
/** A GPU that was too hot is well again only so far below the limit. */
export const HYSTERESIS_CELSIUS = 5;

/**
 * Take in a sample. GPUs that were never seen are added; one that was seen before and is not in the sample may be gone.
 * The same array comes back when nothing changes but temperatures that are well.
 *
 * @param maxCelsius beyond which a GPU is too hot; null when none is.
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

/** What is wrong with these GPUs. */
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
 * What is known of GPUs before any sample, out of troubles that were recorded: a replica that takes a node over goes on
 * from there, so that a trouble ends by what samples say and not by who holds the node.
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

/** The case of nearly every sample: all there, all well. Nothing is allocated. */
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
  // One that does not tell its temperature is not judged by it, and stays what it was while it is away.
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
  // A temperature that is not needed makes no new object for each sample.
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
