import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { createLeaseKeeperOf, type LeaseRecord } from "./lease-keeper.ts";
import type { Lease } from "./leases.ts";

const OTHER: Lease = { name: "other", instance: "other", service: "health", address: "", counter: 7 };

/** A keeper on a record whose answers take their time. */
function keep(times: { readonly renewMs: (turn: number) => number | null; readonly listMs?: number }) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const told: string[] = [];
  let turns = 0;
  const record: LeaseRecord = {
    renew: async () => {
      turns += 1;
      const ms = times.renewMs(turns);
      if (ms === null) throw new Error("the record is away");
      await clock.sleep(ms, ending.signal);
      return turns;
    },
    take: async () => 1,
    list: async () => {
      await clock.sleep(times.listMs ?? 0, ending.signal);
      return [OTHER];
    },
    endLost: async ({ name }) => told.push(`ended ${name} at ${clock.nowMs()}`) > 0,
    endOwn: async () => {},
    close: async () => {},
  };
  const keeper = createLeaseKeeperOf(() => record, {
    clock,
    log: silentLogger,
    claim: { instance: "own", service: "health", address: "" },
    onDoubt: ({ sinceMs }) => told.push(`doubt since ${sinceMs} at ${clock.nowMs()}`),
  });
  const done = keeper.run(ending.signal, () => {});
  const end = async () => {
    ending.abort();
    await done;
  };
  return { clock, told, keeper, end };
}

describe("a lease keeper whose record answers late", () => {
  it("should count its lease as held since it asked, not since it was answered", async () => {
    // The only renewal that succeeds is begun at 0 and answered at 4 s.
    const { clock, told, keeper, end } = keep({ renewMs: (turn) => (turn === 1 ? 4_000 : null) });
    await clock.pass(9_999);
    expect({ told, held: keeper.held }).toEqual({ told: [], held: true });
    await clock.pass(1);
    expect({ told, held: keeper.held }).toEqual({ told: ["doubt since 0 at 10000"], held: false });
    await end();
  });

  it("should end another's lease that stands still for 10 s", async () => {
    const { clock, told, end } = keep({ renewMs: () => 0 });
    await clock.pass(12_000);
    expect(told[0]).toBe("ended other at 10000");
    await end();
  });

  it("should conclude nothing from leases that it was slow to read", async () => {
    const { clock, told, end } = keep({ renewMs: () => 0, listMs: 1_001 });
    await clock.pass(30_000);
    expect(told).toEqual([]);
    await end();
  });
});
