import { followClock, type Plan, type PlanningTime, schedulerActor, type WorkMemory } from "@rollcall/domain";
import { type Clock, WakeUp } from "@rollcall/process";
import type { ChangePosition, WorkCommit, WorkCommitted } from "@rollcall/store";
import { decide, type PlansOutcome } from "./decide.ts";
import { Dirty, LEADER_INTEREST } from "./dirty.ts";
import { type Commit, endHomeless, findOrphans, orphanEndEvents } from "./find-orphans.ts";
import { LeaderMemory } from "./leader-memory.ts";
import type { LeaderMetrics } from "./leader-metrics.ts";
import type { LeaderOptions } from "./leader-options.ts";
import { OrphanNews } from "./orphan-news.ts";
import { planEvents } from "./plan-events.ts";
import { seeToOrders } from "./see-to-orders.ts";

const OBSERVED_A_READ = 2_000;
const MOST_PLACED = 1_000;
/**
 * The maximum number of orders to handle before the next plan. Each order is a separate commit, and nodes can be lost
 * and return during that time.
 */
const MOST_ORDERS = 50;
/** The time at which to evaluate reports, and the signal that aborts reading them. */
interface Look {
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/**
 * Decides what runs where, for as long as this process holds the scheduler's lease. All decisions are derived from
 * the store: if a leader ends between any two steps, the next one makes the same decisions.
 */
export class Leader {
  readonly #options: LeaderOptions;
  readonly #metrics: LeaderMetrics;
  readonly #createShell: () => WorkMemory;
  readonly #wakeUp = new WakeUp();
  readonly #dirty = new Dirty();
  readonly #actor: string;
  #orphans: OrphanNews;
  #memory: LeaderMemory | null = null;

  constructor(options: LeaderOptions, metrics: LeaderMetrics, createShell: () => WorkMemory) {
    this.#options = options;
    this.#actor = schedulerActor(options.instance);
    this.#orphans = new OrphanNews(this.#actor);
    this.#metrics = metrics;
    this.#createShell = createShell;
  }

  /** Lead until the signal aborts, or another process has the lease. */
  async run(signal: AbortSignal, succeeded: () => void): Promise<void> {
    const { record, feed, signals, clock, log } = this.#options;
    const startedAtMs = clock.nowMs();
    this.#dirty.clear();
    // Start over with the orphans, because their times are planning times of one leadership.
    this.#orphans = new OrphanNews(this.#actor);
    const after = await record.currentRevision();
    const position = await record.changePosition();
    // Follow events before reading the store, so that changes made during the read are read again.
    const following = feed.follow({
      name: "scheduler",
      interest: LEADER_INTEREST,
      after,
      deliver: (events) => {
        this.#dirty.note(events);
        if (events.length > 0) this.#wakeUp.call();
      },
    });
    following.caughtUp.catch(() => {});
    const unfollow = signals.follow("OBSERVED", () => this.#wakeUp.call());
    try {
      const memory = new LeaderMemory(this.#options, this.#createShell());
      const time = new LeaderTime(this.#options);
      this.#dirty.addOrdered(await memory.load(await time.nowMs(), signal));
      await this.#catchUp(memory, { nowMs: await time.nowMs(), signal });
      await this.#step("loaded");
      this.#metrics.loaded((clock.nowMs() - startedAtMs) / 1_000);
      await record.noteSchedulerLeads();
      log.info({ took_ms: Math.round(clock.nowMs() - startedAtMs) }, "scheduler became the leader");
      this.#memory = memory;
      await this.#lead(memory, { position, time }, signal, succeeded);
    } finally {
      this.#memory = null;
      following.leave();
      unfollow();
    }
  }

  /** Whether this process leads, which it does once its memory is filled. */
  get isLeading(): boolean {
    return this.#memory !== null;
  }

  async #lead(
    memory: LeaderMemory,
    from: { readonly position: ChangePosition; readonly time: LeaderTime },
    signal: AbortSignal,
    succeeded: () => void,
  ): Promise<void> {
    const { clock, timing } = this.#options;
    const { time } = from;
    let { position } = from;
    let mostPlaced = MOST_PLACED;
    while (!signal.aborted) {
      await this.#refresh(memory, await time.nowMs());
      position = await this.#observe(memory, position, { nowMs: await time.nowMs(), signal });
      const nowMs = await time.nowMs();
      const decided = await this.#decide(memory, nowMs, mostPlaced);
      // Place fewer executions after a conflict, because a smaller plan is less likely to conflict with other writes.
      mostPlaced = decided.isStale ? Math.max(1, mostPlaced >> 2) : Math.min(MOST_PLACED, mostPlaced * 2);
      await this.#revert(memory, nowMs);
      this.#metrics.setWork(memory.size());
      succeeded();
      if (decided.isStale || decided.more || this.#dirty.hasOrders) continue;
      const dueMs = decided.wakeAtMs === null ? timing.pollMs : Math.max(0, decided.wakeAtMs - nowMs);
      const atMostMs = Math.max(timing.gatherMs, Math.min(timing.pollMs, dueMs));
      await this.#wakeUp.rest(clock, { atMostMs, atLeastMs: timing.gatherMs }, signal).catch(() => {});
    }
  }

  /**
   * Read again everything that has changed according to events, and handle orders. Nodes come before jobs, because an
   * ops job runs on the nodes that match when it is submitted. Nodes are read again at the end, because decisions
   * about losses depend on their latest state, however long the rest took.
   */
  async #refresh(memory: LeaderMemory, nowMs: number): Promise<void> {
    const commit: Commit = (work) => this.#commit(memory, work);
    const jobs = this.#dirty.takeJobs();
    const before = await this.#refreshNodes(memory);
    for (const names of inPieces(jobs, 200)) await memory.refreshJobs(names, nowMs);
    const ordered = this.#dirty.takeOrdered(MOST_ORDERS);
    if (ordered.length > 0) await seeToOrders(memory, ordered, commit, this.#options);
    const after = await this.#refreshNodes(memory);
    if (before.isAnyGone || after.isAnyGone) await endHomeless(nowMs, commit, this.#options);
    if (jobs.length + ordered.length + before.count + after.count > 0) await this.#step("refreshed");
  }

  async #refreshNodes(memory: LeaderMemory): Promise<{ readonly count: number; readonly isAnyGone: boolean }> {
    const nodes = this.#dirty.takeNodes();
    let isAnyGone = false;
    for (const ids of inPieces(nodes, 500)) isAnyGone = (await memory.refreshNodes(ids)) || isAnyGone;
    return { count: nodes.length, isAnyGone };
  }

  /**
   * Handle earlier reports about executions that are not in memory. These reports arrived while no process led, or
   * before an older backup of the store was restored, so the reads of later changes do not include them.
   */
  async #catchUp(memory: LeaderMemory, { nowMs, signal }: Look): Promise<void> {
    const { record } = this.#options;
    for (let after = ""; ; ) {
      signal.throwIfAborted();
      const ids = await record.readUnsettledIds({ after, limit: OBSERVED_A_READ });
      await this.#settle(memory, ids, nowMs);
      const last = ids.at(-1);
      if (last === undefined || ids.length < OBSERVED_A_READ) break;
      after = last;
    }
    const commit: Commit = (work) => this.#commit(memory, work);
    await findOrphans({ position: null, nowMs }, this.#orphans, commit, this.#options);
    await endHomeless(nowMs, commit, this.#options);
  }

  /**
   * Read what nodes report about executions, and write the changes that follow for executions that are not in memory.
   */
  async #settle(memory: LeaderMemory, ids: readonly string[], nowMs: number): Promise<void> {
    const executions = await memory.observe(ids, nowMs);
    if (executions.length === 0) return;
    const events = orphanEndEvents(executions, this.#options.instance);
    await this.#commit(memory, { plan: { executions, jobs: [], drains: [] }, events });
  }

  /** Read what nodes have reported since a position. Returns where the next read begins. */
  async #observe(memory: LeaderMemory, from: ChangePosition, { nowMs, signal }: Look): Promise<ChangePosition> {
    const { record } = this.#options;
    let next: ChangePosition | null = null;
    let after = "";
    for (;;) {
      signal.throwIfAborted();
      const { items, position } = await record.readObservedIds({ position: from, after, limit: OBSERVED_A_READ });
      next ??= position;
      await this.#settle(memory, items, nowMs);
      const last = items.at(-1);
      if (last === undefined || items.length < OBSERVED_A_READ) break;
      after = last;
    }
    const commit: Commit = (work) => this.#commit(memory, work);
    await findOrphans({ position: from, nowMs }, this.#orphans, commit, this.#options);
    await this.#step("observed");
    return next;
  }

  /**
   * Revert the jobs whose updates halted, if their policies say so. The events of a revert make the leader read the
   * job again.
   */
  async #revert(memory: LeaderMemory, nowMs: number): Promise<void> {
    const { record, log } = this.#options;
    for (const { name, version } of memory.takeReverts()) {
      const refusal = await record.autoRevert(name, version, { actor: this.#actor, message: "", atMs: nowMs });
      if (refusal !== null)
        log.warn({ job: name, version, why: refusal }, "a job whose update halted cannot be reverted");
      else await this.#step("committed");
    }
  }

  #decide(memory: LeaderMemory, nowMs: number, mostPlaced: number): Promise<PlansOutcome> {
    return decide({
      plan: async () => {
        const plan = this.#plan(memory, nowMs, mostPlaced);
        await this.#step("planned");
        return plan;
      },
      write: (plan) => this.#commit(memory, { plan, events: planEvents(plan, this.#actor) }),
      revert: (plan) => memory.revert(plan),
    });
  }

  #plan(memory: LeaderMemory, nowMs: number, mostPlaced: number): Plan {
    const { clock } = this.#options;
    const startedAtMs = clock.nowMs();
    const plan = memory.plan(nowMs, mostPlaced);
    this.#metrics.planned((clock.nowMs() - startedAtMs) / 1_000);
    return plan;
  }

  /**
   * Commit. If nodes or jobs differ from what this process expects, they are read again later. Throws if another
   * process holds the lease.
   */
  async #commit(
    memory: LeaderMemory,
    commit: Omit<WorkCommit, "instance" | "jobOf" | "specDigestOf">,
  ): Promise<WorkCommitted> {
    const { record, clock, instance, log } = this.#options;
    const startedAtMs = clock.nowMs();
    const jobOf = (job: string) => memory.jobOf(job);
    const specDigestOf = (job: string, version: number) => memory.digestOf(job, version);
    const committed = await record.commitWork({ ...commit, instance, jobOf, specDigestOf });
    const seconds = (clock.nowMs() - startedAtMs) / 1_000;
    switch (committed.outcome) {
      case "COMMITTED":
        this.#metrics.committed("committed", seconds);
        for (const [kind, count] of countKinds(commit.plan)) this.#metrics.changed(kind, count);
        break;
      case "STALE":
        this.#metrics.committed("stale", seconds);
        this.#dirty.add(committed);
        log.debug({ nodes: committed.nodeIds.length, jobs: committed.jobs.length }, "plan was stale");
        break;
      case "FENCED":
        this.#metrics.committed("fenced", seconds);
        throw new Error("another process holds the scheduler's lease");
    }
    await this.#step("committed");
    return committed;
  }

  async #step(step: Parameters<LeaderOptions["afterStep"]>[0]): Promise<void> {
    await this.#options.afterStep(step);
  }
}

function countKinds({ executions }: Pick<Plan, "executions">): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { kind } of executions) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

function* inPieces<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

/**
 * The planning time. It follows the store's clock, which is read periodically. If that clock steps, the planning time
 * approaches the new time gradually.
 */
class LeaderTime {
  readonly #options: {
    readonly record: LeaderOptions["record"];
    readonly clock: Clock;
    readonly timing: LeaderOptions["timing"];
  };
  #time: PlanningTime | null = null;

  constructor(options: LeaderOptions) {
    this.#options = options;
  }

  /** Throws if the store's clock stepped too far to follow. In that case, all times must be read again. */
  async nowMs(): Promise<number> {
    const { record, clock, timing } = this.#options;
    if (this.#time === null || clock.nowMs() - this.#time.readAtMs >= timing.clockEveryMs) {
      const recordMs = await record.storeTimeMs();
      this.#time = followClock(this.#time, clock.nowMs(), recordMs);
      if (this.#time === null) throw new Error("the database's clock stepped by more than ten minutes");
    }
    return Math.floor(clock.nowMs() + this.#time.aheadMs);
  }
}
