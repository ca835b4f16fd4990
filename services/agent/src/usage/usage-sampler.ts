import type { Machine } from "../machine/machine.ts";
import { createCpuMeter } from "./cpu-usage.ts";
import { readNvidiaUsage, readRocmUsage } from "./gpu-usage.ts";
import type { MachineUsage } from "./machine-usage.ts";
import { readMemoryUsage } from "./memory-usage.ts";
import { createNumaMeter } from "./numa-usage.ts";
import { readTemperatures } from "./temperatures.ts";

/** Samples what the machine is doing, in the background. */
export interface UsageSampler {
  /**
   * Begin new readings; those that are still under way are left alone. Resolves when all have ended, which a
   * heartbeat must not wait for.
   */
  refresh(): Promise<void>;
  /** The last readings, without those older than `maxAgeMs`. Never waits. */
  latest(maxAgeMs: number): MachineUsage;
}

/** What a sampler works with. */
export interface UsageSamplerOptions {
  readonly machine: Machine;
  readonly stateDirectory: string;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** A reading that is renewed in the background. */
interface Gauge<T> {
  /** Begin a new reading unless one is under way. Resolves when the one under way has ended; never rejects. */
  refresh(): Promise<void>;
  /** The last reading, or `undefined` when there is none or it is older than `maxAgeMs`. Never waits. */
  latest(maxAgeMs: number): T | undefined;
}

/**
 * Create a sampler. Nothing is read before the first `refresh`, and no share of CPU time is known before the second.
 */
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
 * Create a gauge. A reading that never ends (a file system whose server is gone, a tool whose driver is stuck)
 * holds up this gauge alone, and takes up one call, not one a heartbeat.
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
      // The old reading stands until it is too old: a failed reading is as good as a late one.
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
