import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { seededRandom } from "../../seeded-random.ts";
import { jobSpec, workNode } from "../../testing/work-fixtures.ts";
import { TestFleet } from "../../testing/work-fleet.ts";

const COUNT = 2;
const STEPS = [-60_000, 60_000] as const;

/** Performs random actions on one batch job and one service. */
class SteppedClock {
  readonly #fleet = new TestFleet([workNode("a"), workNode("b")]);
  readonly #random: () => number;
  /** The replicas of the batch job that have completed in its current run. */
  #done = new Set<number>();
  #old = new Set<string>();

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    const update = { maxParallel: 1, maxSurge: 0, minReadyMs: 0, readyDeadlineMs: 300_000, autoRevert: false };
    this.#fleet.submit(jobSpec({ name: "web", type: "service", count: COUNT, update }));
    this.#fleet.submit(jobSpec({ name: "once", type: "batch", count: COUNT }));
    this.#settle();
  }

  act(): void {
    const acts = [this.#step, this.#step, this.#restart, this.#finish, this.#finish, this.#resubmit, this.#reload];
    acts[Math.floor(this.#random() * acts.length)]?.call(this);
    this.#settle();
    this.#check();
  }

  readonly #step = (): void => this.#fleet.pass(STEPS[Math.floor(this.#random() * 2)] ?? 0);

  /** Restart the service, so that all its running executions belong to an earlier run. */
  readonly #restart = (): void => {
    this.#old = new Set(this.#fleet.running().map(({ id }) => id));
    this.#fleet.restart("web");
  };

  /** Complete one replica of the batch job. */
  readonly #finish = (): void => {
    const [one] = this.#fleet.running().filter(({ job }) => job === "once");
    if (one === undefined) return;
    expect(this.#done.has(one.index)).toBe(false);
    this.#done.add(one.index);
    this.#fleet.exit([one], 0);
  };

  readonly #resubmit = (): void => {
    const job = this.#fleet.jobs.get("once");
    if (job === undefined || job.state === "ACTIVE") return;
    this.#done = new Set();
    this.#fleet.submit(job.spec);
  };

  readonly #reload = (): void => this.#fleet.reload();

  /** Let nodes carry out their orders until nothing changes. */
  #settle(): void {
    for (let round = 0; round < 10; round += 1) {
      if (this.#fleet.plan().executions.length === 0 && round > 0) return;
      for (const nodeId of this.#fleet.nodes.keys()) {
        this.#fleet.stopAll(nodeId);
        this.#fleet.ready(nodeId);
      }
    }
  }

  #check(): void {
    const running = this.#fleet.running();
    const web = running.filter(({ job }) => job === "web");
    expect(web).toHaveLength(COUNT);
    for (const { id } of web) expect(this.#old.has(id)).toBe(false);
    const once = running.filter(({ job }) => job === "once");
    expect(once.map(({ index }) => index).sort()).toEqual([0, 1].filter((index) => !this.#done.has(index)));
    expect(this.#fleet.jobs.get("once")?.state).toBe(this.#done.size === COUNT ? "COMPLETED" : "ACTIVE");
    const ids = [...this.#fleet.executions.keys()];
    expect(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? ""))).toBe(true);
  }
}

describe("a planner whose clock is set back and forth", () => {
  it("should run a job that is submitted again, replace restarted executions, and run nothing twice", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 30 }), (seed) => {
        const fleet = new SteppedClock(seed);
        for (let act = 0; act < 40; act += 1) fleet.act();
      }),
      { numRuns: 20 },
    );
  });
});
