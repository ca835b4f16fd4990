import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { ManualClock } from "@rollcall/testkit/time";
import { createLeaseKeeperOf, type LeaseStore } from "./lease-keeper.ts";
import type { Lease } from "./leases.ts";
import { leasedTaskOf, type TaskLeaseStore } from "./task-leases.ts";

const SERVICE = { service: "health", address: "" };

/** One lease that several processes share. */
class SharedLease {
  lease: Lease | null = null;

  storeOf(instance: string): TaskLeaseStore & Pick<LeaseStore, "list" | "endLost" | "endOwn" | "close"> {
    const isHolder = () => this.lease?.instance === instance;
    const release = async () => {
      if (isHolder()) this.lease = null;
    };
    const expire = async ({ counter }: Lease) => {
      if (this.lease?.counter !== counter) return false;
      this.lease = null;
      return true;
    };
    const renew = async () => {
      if (this.lease === null || !isHolder()) return null;
      this.lease = { ...this.lease, counter: this.lease.counter + 1 };
      return this.lease.counter;
    };
    const take = async () => {
      this.lease ??= { name: "chore", instance, ...SERVICE, counter: 1 };
      return isHolder() ? this.lease.counter : null;
    };
    return {
      ...{ take, renew, expire, release, endOwn: release, endLost: expire },
      read: async () => this.lease,
      list: async () => (this.lease === null ? [] : [this.lease]),
      close: async () => {},
    };
  }
}

describe("a leased task, one of whose calls fails", () => {
  it("should never run in two processes, and always run soon after", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const clock = new ManualClock();
      const shared = new SharedLease();
      const working = new Set<string>();
      const overlaps: number[] = [];
      const endings = ["a", "b"].map((instance) => {
        const ending = new AbortController();
        const store = shared.storeOf(instance);
        const task = leasedTaskOf(instance === "a" ? ports.wrap("lease", store) : store, {
          ...{ clock, log: silentLogger, claim: { name: "chore", instance, ...SERVICE } },
          work: async (signal) => {
            working.add(instance);
            if (working.size > 1) overlaps.push(clock.nowMs());
            await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
            working.delete(instance);
          },
        });
        const run = async (): Promise<void> => {
          // The supervisor of a process restarts a task that has ended with an error.
          while (!ending.signal.aborted) await task.run(ending.signal, () => {}).catch(() => clock.pass(0));
        };
        return { ending, done: run() };
      });
      await clock.pass(20_000);
      expect(working.size).toBe(1);
      endings[0]?.ending.abort();
      await clock.pass(15_000);
      expect([...working]).toEqual(["b"]);
      endings[1]?.ending.abort();
      expect(overlaps).toEqual([]);
      await Promise.all(endings.map(({ done }) => done));
    });
    expect(calls).toEqual(expect.arrayContaining(["lease.take", "lease.renew", "lease.release"]));
  });
});

describe("a process's lease, one of whose calls fails", () => {
  it("should be held without a doubt, and be free afterwards", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const clock = new ManualClock();
      const shared = new SharedLease();
      const doubts: number[] = [];
      const ending = new AbortController();
      const keeper = createLeaseKeeperOf(() => ports.wrap("lease", shared.storeOf("a"), { except: ["close"] }), {
        ...{ clock, log: silentLogger, claim: { instance: "a", ...SERVICE } },
        onDoubt: ({ sinceMs }) => doubts.push(sinceMs),
      });
      const done = keeper.run(ending.signal, () => {});
      await clock.pass(10_000);
      expect(keeper.held).toBe(true);
      // One failed renewal is far from the expiry of the lease.
      expect(doubts).toEqual([]);
      ending.abort();
      await done;
      if (ports.failed !== "lease.endOwn") expect(shared.lease).toBeNull();
    });
    expect(calls).toEqual(expect.arrayContaining(["lease.take", "lease.renew", "lease.list", "lease.endOwn"]));
  });
});
