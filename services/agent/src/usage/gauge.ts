/** A reading that is renewed in the background. */
export interface Gauge<T> {
  /** Begin a new reading unless one is under way. Resolves when the one under way has ended; never rejects. */
  refresh(): Promise<void>;
  /** The last reading, or `undefined` when there is none or it is older than `maxAgeMs`. Never waits. */
  latest(maxAgeMs: number): T | undefined;
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
