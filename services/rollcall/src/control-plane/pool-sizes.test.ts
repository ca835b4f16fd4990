import { describe, expect, it } from "@jest/globals";
import { fitsEmbeddedPostgres, OTHER_CONNECTIONS, sharedPoolSizes } from "./pool-sizes.ts";

const CONFIGURED = { poolSize: 16, reservedPoolSize: 6 };

describe("sharedPoolSizes()", () => {
  it.each([
    [2, { poolSize: 16, reservedPoolSize: 6 }],
    [6, { poolSize: 16, reservedPoolSize: 6 }],
    [8, { poolSize: 12, reservedPoolSize: 5 }],
    [16, { poolSize: 4, reservedPoolSize: 2 }],
    [64, { poolSize: 2, reservedPoolSize: 2 }],
  ])("should give each of %i workers its share", (workers, expected) => {
    expect(sharedPoolSizes(CONFIGURED, workers)).toEqual(expected);
  });

  it("should never give more than is configured, nor all workers more than Postgres takes", () => {
    for (let workers = 2; workers <= 64; workers += 1) {
      for (const configured of [CONFIGURED, { poolSize: 500, reservedPoolSize: 100 }]) {
        const { poolSize, reservedPoolSize } = sharedPoolSizes(configured, workers);
        expect(poolSize).toBeLessThanOrEqual(configured.poolSize);
        expect(reservedPoolSize).toBeLessThanOrEqual(configured.reservedPoolSize);
        const all = workers * (poolSize + reservedPoolSize + OTHER_CONNECTIONS);
        // 200, less three for superusers and 22 for the primary.
        if (fitsEmbeddedPostgres(workers)) expect(all).toBeLessThanOrEqual(175);
      }
    }
    expect(fitsEmbeddedPostgres(21)).toBe(true);
    expect(fitsEmbeddedPostgres(22)).toBe(false);
  });
});
