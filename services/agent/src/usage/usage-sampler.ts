import type { Machine } from "../machine/machine.ts";
import { createCpuMeter } from "./cpu-usage.ts";
import { readNvidiaUsage, readRocmUsage } from "./gpu-usage.ts";
import type { MachineUsage } from "./machine-usage.ts";
import { readMemoryUsage } from "./memory-usage.ts";
import { createNumaMeter } from "./numa-usage.ts";
import { readTemperatures } from "./temperatures.ts";

/** Measures the machine's usage in the background. */
export interface UsageSampler {
  /**
   * Start new readings, except those still in progress. Resolves when all have ended; a heartbeat must not wait
   * for this.
   */
  refresh(): Promise<void>;
  /** The last readings, without those older than `maxAgeMs`. Never waits. */
  latest(maxAgeMs: number): MachineUsage;
}

export interface UsageSamplerOptions {
  readonly machine: Machine;
  readonly stateDirectory: string;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** A reading that is renewed in the background. */
interface Gauge<T> {
  /** Start a new reading unless one is in progress. Resolves when the one in progress has ended; never rejects. */
  refresh(): Promise<void>;
  /** The last reading, or `undefined` if there is none or it is older than `maxAgeMs`. Never waits. */
  latest(maxAgeMs: number): T | undefined;
}

/** Create a sampler. Nothing is read before the first `refresh`, and no CPU usage is known before the second. */
export function createUsageSampler(options: UsageSamplerOptions): UsageSampler {
  const { machine, stateDirectory, nowMs } = options;
  const cpu = createGauge(createCpuMeter(machine, nowMs), nowMs);
  const memory = createGauge(() => readMemoryUsage(machine), nowMs);
  const disk = createGauge(() => machine.fileSystemSize(stateDirectory), nowMs);
  const temperatures = createGauge(() => readTemperatures(machine), nowMs);
  const nvidia = createGauge(() => readNvidiaUsage(machine), nowMs);
  const rocm = createGauge(() => readRocmUsage(machine), nowMs);
  const numaNodes = createGauge(createNumaMeter(machine), nowMs);
  const gauges = [cpu, memory, disk, temperatures, nvidia, rocm, numaNodes];
  return {
    refresh: async () => {
      await Promise.all(gauges.map((gauge) => gauge.refresh()));
    },
    latest: (maxAgeMs) => ({
      cpuPercent: cpu.latest(maxAgeMs),
      memory: memory.latest(maxAgeMs),
      disk: disk.latest(maxAgeMs),
      temperatures: temperatures.latest(maxAgeMs),
      gpus: [...(nvidia.latest(maxAgeMs) ?? []), ...(rocm.latest(maxAgeMs) ?? [])],
      gpusUnknown: nvidia.latest(maxAgeMs) === undefined || rocm.latest(maxAgeMs) === undefined,
      numaNodes: numaNodes.latest(maxAgeMs) ?? [],
    }),
  };
}

/**
 * Create a gauge. A reading that never ends, because a file system's server is gone or a tool's driver is stuck,
 * blocks only this gauge, and is not started again at each heartbeat.
 */
export function createGauge<T>(read: () => Promise<T | undefined>, nowMs: () => number): Gauge<T> {
  let value: T | undefined;
  let readAtMs = 0;
  let underWay: Promise<void> | undefined;

  async function renew(): Promise<void> {
    try {
      const next = await read();
      if (next === undefined) return;
      value = next;
      readAtMs = nowMs();
    } catch {
      // Treat a failed reading like a late one: the previous reading is used until it is too old.
    }
  }

  return {
    refresh: () => {
      underWay ??= renew().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
    latest: (maxAgeMs) => (nowMs() - readAtMs <= maxAgeMs ? value : undefined),
  };
}
