import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { ManualClock } from "@rollcall/testkit/time";
import { createLeaseKeeperOf, type LeaseStore } from "./lease-keeper.ts";
import type { Lease } from "./leases.ts";
import { leasedTaskOf, type TaskLeaseStore } from "./task-leases.ts";

const OTHER: Lease = { name: "other", instance: "other", service: "health", address: "", counter: 7 };

/** Start a keeper whose store responds after the given delays. */
function keep(times: { readonly renewMs: (turn: number) => number | null; readonly listMs?: number }) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const told: string[] = [];
  let turns = 0;
  const record: LeaseStore = {
    renew: async () => {
      turns += 1;
      const ms = times.renewMs(turns);
      if (ms === null) throw new Error("the database is away");
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
  it("should count its lease as held since the request, not since the answer", async () => {
    // The only successful renewal starts at 0 and gets its response at 4 s.
    const { clock, told, keeper, end } = keep({ renewMs: (turn) => (turn === 1 ? 4_000 : null) });
    await clock.pass(9_999);
    expect({ told, held: keeper.held }).toEqual({ told: [], held: true });
    await clock.pass(1);
    expect({ told, held: keeper.held }).toEqual({ told: ["doubt since 0 at 10000"], held: false });
    await end();
  });

  it("should end another's lease that does not move for 10 s", async () => {
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

describe("a lease keeper", () => {
  it.each([
    ["responds", async () => 1, async () => {}],
    ["cannot be reached", () => Promise.reject(new Error("away")), () => Promise.reject(new Error("away"))],
  ])("should close each connection that it opens, also when the store %s", async (_, renew, endOwn) => {
    const clock = new ManualClock();
    const open = new Set<LeaseStore>();
    const keeper = createLeaseKeeperOf(
      () => {
        const close = async () => void open.delete(record);
        const record: LeaseStore = {
          ...{ renew, take: renew, list: async () => [], endLost: async () => false, endOwn, close },
        };
        open.add(record);
        return record;
      },
      { clock, log: silentLogger, claim: { instance: "own", service: "health", address: "" } },
    );
    for (let start = 0; start < 3; start += 1) {
      const ending = new AbortController();
      const done = keeper.run(ending.signal, () => {});
      await clock.pass(10_000);
      expect(open.size).toBe(1);
      ending.abort();
      await done;
      expect(open.size).toBe(0);
    }
  });
});

/** Start a task whose store responds after the given delays. Another process can hold the task's lease. */
function contend(times: {
  readonly renewMs?: (turn: number) => number | null;
  readonly takeMs?: number;
  readonly readMs?: number;
  readonly holder?: Lease;
}) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const told: string[] = [];
  let holder = times.holder ?? null;
  let turns = 0;
  const record: TaskLeaseStore = {
    take: async () => {
      await clock.sleep(times.takeMs ?? 0, ending.signal);
      return holder === null ? 1 : null;
    },
    read: async () => {
      await clock.sleep(times.readMs ?? 0, ending.signal);
      return holder;
    },
    renew: async () => {
      turns += 1;
      const ms = times.renewMs?.(turns) ?? null;
      if (ms === null) throw new Error("the database is away");
      await clock.sleep(ms, ending.signal);
      return turns;
    },
    expire: async ({ name }) => {
      holder = null;
      return told.push(`ended ${name} at ${clock.nowMs()}`) > 0;
    },
    release: async () => void told.push(`released at ${clock.nowMs()}`),
  };
  const task = leasedTaskOf(record, {
    clock,
    log: silentLogger,
    claim: { name: "chore", instance: "own", service: "health", address: "" },
    work: async (signal) => {
      told.push(`begins at ${clock.nowMs()}`);
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      told.push(`ends at ${clock.nowMs()}`);
    },
  });
  const done = task.run(ending.signal, () => {});
  const end = async () => {
    ending.abort();
    await done;
  };
  return { clock, told, task, end };
}

describe("a leased task whose record answers late", () => {
  it("should count its lease as held since the request to take it, not since the answer", async () => {
    const { clock, told, end } = contend({ takeMs: 3_000 });
    await clock.pass(9_999);
    expect(told).toEqual(["begins at 3000"]);
    await clock.pass(1);
    expect(told).toEqual(["begins at 3000", "ends at 10000", "released at 10000"]);
    await end();
  });

  it("should count a renewal since its request", async () => {
    // The only successful renewal starts at 2 s and gets its response at 6 s.
    const { clock, told, end } = contend({ renewMs: (turn) => (turn === 1 ? 4_000 : null) });
    await clock.pass(11_999);
    expect(told).toEqual(["begins at 0"]);
    await clock.pass(1);
    expect(told.slice(0, 3)).toEqual(["begins at 0", "ends at 12000", "released at 12000"]);
    await end();
  });

  it("should not start with a lease whose late answer means that it may have expired", async () => {
    const { clock, told, end } = contend({ takeMs: 10_000 });
    await clock.pass(60_000);
    expect(told).toEqual([]);
    await end();
  });

  it.each([
    [0, ["ended chore at 10000", "begins at 10000"]],
    [1_001, []],
  ])("should take over a lease that does not move, from reads that took %d ms: %j", async (readMs, expected) => {
    const holder = { ...OTHER, name: "chore" };
    const { clock, told, end } = contend({ holder, readMs, renewMs: () => 0 });
    await clock.pass(readMs === 0 ? 10_000 : 60_000);
    expect(told).toEqual(expected);
    await end();
  });
});
