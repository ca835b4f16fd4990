import { describe, expect, it } from "@jest/globals";
import { fitsEmbeddedPostgres, OTHER_CONNECTIONS, sharedPoolSizes } from "./pool-sizes.ts";

const CONFIGURED = { poolSize: 16, reservedPoolSize: 6 };

describe("sharedPoolSizes()", () => {
  it.each([
    [2, { poolSize: 16, reservedPoolSize: 6 }],
    [6, { poolSize: 16, reservedPoolSize: 6 }],
    [8, { poolSize: 11, reservedPoolSize: 5 }],
    [16, { poolSize: 3, reservedPoolSize: 2 }],
    [64, { poolSize: 2, reservedPoolSize: 2 }],
  ])("should give each of %i workers its share", (workers, expected) => {
    expect(sharedPoolSizes(CONFIGURED, workers)).toEqual(expected);
  });

  it("should never give more than configured, nor all workers more than Postgres accepts", () => {
    for (let workers = 2; workers <= 64; workers += 1) {
      for (const configured of [CONFIGURED, { poolSize: 500, reservedPoolSize: 100 }]) {
        const { poolSize, reservedPoolSize } = sharedPoolSizes(configured, workers);
        expect(poolSize).toBeLessThanOrEqual(configured.poolSize);
        expect(reservedPoolSize).toBeLessThanOrEqual(configured.reservedPoolSize);
        const all = workers * (poolSize + reservedPoolSize + OTHER_CONNECTIONS);
        // Of 200 connections, three are for superusers and 22 for the primary.
        if (fitsEmbeddedPostgres(workers)) expect(all).toBeLessThanOrEqual(175);
      }
    }
    expect(fitsEmbeddedPostgres(18)).toBe(true);
    expect(fitsEmbeddedPostgres(19)).toBe(false);
  });
});
