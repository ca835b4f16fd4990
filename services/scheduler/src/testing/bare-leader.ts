import type { JobSpec } from "@rollcall/api/rollcall/work/v1/work_pb";
import { WorkMemory } from "@rollcall/domain";
import { acceptJob, type Operation, submitJobIn } from "@rollcall/operations";
import { createMetrics, silentLogger } from "@rollcall/process";
import {
  type EventRow,
  type FollowOptions,
  SCHEDULER_LEASE,
  SCHEDULER_LEASE_TIMING,
  type Store,
  takeLease,
} from "@rollcall/store";
import { ManualClock, until } from "@rollcall/testkit/time";
import { Leader } from "../leader/leader.ts";
import { createLeaderMetrics } from "../leader/leader-metrics.ts";
import type { LeaderStore } from "../leader/leader-store.ts";

const INSTANCE = "leader";
/** The intervals of a leader whose ticks a test makes. Leases and clocks do not matter to it. */
const TIMING = { pollMs: 2, gatherMs: 1, clockEveryMs: 600_000, ...SCHEDULER_LEASE_TIMING };

/** Store a job as a call of submitJob() would. */
export async function saveJob(store: Store, spec: JobSpec): Promise<void> {
  const by = { actor: "user:test", message: "", atMs: 0 };
  const operation = { by, call: by, key: null, quota: null, validateOnly: false, noteRevision: () => {} };
  const accepted = acceptJob(spec, by.actor);
  await store.change(async (tx) => {
    // Without an entry in the audit log, because there is no call.
    const { result, events } = await submitJobIn(tx, operation as unknown as Operation, accepted, "");
    return { result, events };
  });
}

/** A leader without a process: it holds the lease, and makes one tick whenever a test asks for it. */
export class BareLeader {
  readonly #leader: Leader;
  readonly #clock = new ManualClock();
  readonly #ending = new AbortController();
  #deliver: FollowOptions["deliver"] = () => {};
  #ticks = 0;

  constructor(record: LeaderStore) {
    const follow = ({ deliver }: FollowOptions) => {
      this.#deliver = deliver;
      return { caughtUp: Promise.resolve(), position: 0n, leave: () => {} };
    };
    const options = {
      ...{ record, feed: { follow }, signals: { follow: () => () => {} }, instance: INSTANCE, timing: TIMING },
      ...{ clock: this.#clock, log: silentLogger, random: () => 0, afterStep: () => {} },
    };
    const metrics = createLeaderMetrics(createMetrics({ defaults: false }), () => true);
    this.#leader = new Leader(options, metrics, () => new WorkMemory());
  }

  /** Take the lease that a leader's commits need. */
  static async takeLease({ db }: Pick<Store, "db">): Promise<void> {
    await takeLease(db, { name: SCHEDULER_LEASE, instance: INSTANCE, service: "scheduler", address: "here" });
  }

  /** Lead until end() is called. */
  async lead(): Promise<void> {
    await this.#leader.run(this.#ending.signal, () => {
      this.#ticks += 1;
    });
  }

  /** Deliver events of these types and subjects, and wait for the end of a tick that handles them. */
  async tick(...events: readonly Pick<EventRow, "type" | "subject">[]): Promise<void> {
    if (events.length > 0) this.#deliver(events as EventRow[], 0n);
    const before = this.#ticks;
    await until("a tick of the leader", () => {
      if (this.#ticks > before) return true;
      this.#clock.advance(1);
      return false;
    });
  }

  end(): void {
    this.#ending.abort(new Error("the test has ended"));
  }
}
