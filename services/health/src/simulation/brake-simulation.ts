import {
  BRAKE_CLUSTER,
  type BrakeReading,
  type BrakeRelease,
  type BrakeRow,
  type GroupLosses,
  type GroupSum,
  seededRandom,
} from "@rollcall/domain";
import { StoreUnavailableError } from "@rollcall/errors";
import { createMetrics, silentLogger } from "@rollcall/process";
import { BrakeDecider } from "../brake/brake-decider.ts";
import type { BrakeRecord, ReleasedReaction } from "../brake/brake-record.ts";
import { createVirtualClock, Schedule } from "./schedule.ts";

/** One node, as it is and as the record has it. */
interface Member {
  readonly id: string;
  readonly group: string;
  readonly replica: number;
  /** Of silence, until it is lost. */
  readonly lostAfterMs: number;
  /** The last report of each replica before its loss. */
  reportedBefore: readonly number[];
  /** Since when it is gone; null while it beats. */
  goneSinceMs: number | null;
  /** When it was last back. */
  backAtMs: number;
  reaction: "PENDING" | "ALLOWED" | null;
  /** The number of its loss; null while the record has it as HEALTHY. */
  loss: number | null;
  lostSinceMs: number;
  /** When its last reaction was released. */
  releasedAtMs: number | null;
  /** Since when its reaction could have been released: it is pending, and no storm is near. */
  waitingSinceMs: number | null;
}

const STEP_MS = 1_000;
const SILENT_AFTER_MS = 30_000;
const LEAST_LOST_AFTER_MS = 60_000;
const MOST_LOST_AFTER_MS = 90_000;
const REPORT_EVERY_STEPS = 2;
const CHECK_EVERY_STEPS = 5;
const REPLICAS = 2;
/** A report that began before a loss may arrive after it: the second one certainly began later. */
const REPORTS = 2;
const GROUPS: readonly (readonly [string, number])[] = [
  ["zone=a", 30],
  ["zone=b", 12],
  ["zone=c", 2],
];
const ERROR_SHARE = 0.002;
const MINUTE_MS = 60_000;
/** Nodes lost within this time are lost together. */
const TOGETHER_MS = 5_000;
/** Above the brake's own share, so that a storm here is certainly one. */
const STORM_SHARE = 0.6;
/** Below the brake's own share: some may have come back since they were counted. */
const CERTAIN_SHARE = 0.4;
/** The greatest age of a count. */
const LATE_MS = 15_000;
const CALM_SHARE = 0.3;
const RELEASED_WITHIN_MS = 60_000;
const AWAY = new StoreUnavailableError("Connection terminated unexpectedly");

/**
 * Run the shipped decider of the brake over a fleet whose nodes die alone and together, and return. Returns the broken
 * invariant; null for none.
 */
export async function simulateBrake(options: { readonly seed: number; readonly durationMs: number }) {
  const simulation = new BrakeSimulation(options.seed);
  await simulation.run(options.durationMs);
  return simulation.verdict();
}

class BrakeSimulation {
  readonly #schedule = new Schedule(STEP_MS);
  readonly #random: () => number;
  readonly #members: readonly Member[];
  readonly #rows = new Map<string, BrakeRow>();
  readonly #reports = new Map<string, { sequence: number; groups: ReadonlyMap<string, GroupSum> }>();
  #lastLoss = 0;
  /** When a decider last started without knowing what had been released. */
  #beganMs = 0;
  #releases = 0;
  #decider = new AbortController();
  #violation: string | null = null;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#members = GROUPS.flatMap(([group, size]) =>
      Array.from({ length: size }, (_, index) => ({
        ...{ id: `${group}-${index}`, group, replica: index % REPLICAS, goneSinceMs: null, reaction: null },
        ...{
          lostAfterMs: LEAST_LOST_AFTER_MS + (index % 4) * 10_000,
          reportedBefore: [],
          backAtMs: Number.NEGATIVE_INFINITY,
        },
        ...{ loss: null, lostSinceMs: 0, releasedAtMs: null, waitingSinceMs: null },
      })),
    );
  }

  async run(durationMs: number): Promise<void> {
    this.#startDecider();
    while (this.#schedule.nowMs < durationMs && this.#violation === null) {
      this.#befall();
      this.#judge();
      if (this.#schedule.steps % REPORT_EVERY_STEPS === 0) this.#report();
      await this.#schedule.advance();
      if (this.#schedule.steps % CHECK_EVERY_STEPS === 0) this.#checkWaiting();
    }
    this.#decider.abort();
  }

  verdict() {
    return { releases: this.#releases, violation: this.#violation };
  }

  /** Deaths of one, of many, and of all; and a decider that takes over from another. */
  #befall(): void {
    const chance = this.#random();
    if (chance < 0.004) this.#kill([this.#any()]);
    else if (chance < 0.0045) this.#kill(this.#some(BRAKE_CLUSTER));
    else if (chance < 0.006) this.#kill(this.#some(this.#any().group));
    else if (chance < 0.007) this.#startDecider();
  }

  #kill(members: readonly Member[]): void {
    const { nowMs } = this.#schedule;
    // A switch that is down, or machines that come back one by one.
    const togetherMs = this.#random() < 0.5 ? this.#goneForMs() : null;
    for (const member of members) {
      if (member.goneSinceMs !== null) continue;
      member.goneSinceMs = nowMs;
      this.#schedule.after(togetherMs ?? this.#goneForMs(), () => {
        member.goneSinceMs = null;
        member.backAtMs = this.#schedule.nowMs;
        member.reaction = null;
        member.loss = null;
        member.waitingSinceMs = null;
      });
    }
  }

  #goneForMs(): number {
    return 20_000 * 60 ** this.#random();
  }

  #any(): Member {
    return this.#members[Math.floor(this.#random() * this.#members.length)] as Member;
  }

  /** All of a group or of the cluster, or most. */
  #some(scope: string): readonly Member[] {
    const share = this.#random() < 0.3 ? 1 : 0.3 + 0.7 * this.#random();
    return this.#in(scope).filter(() => this.#random() < share);
  }

  #in(scope: string): readonly Member[] {
    return scope === BRAKE_CLUSTER ? this.#members : this.#members.filter(({ group }) => group === scope);
  }

  #startDecider(): void {
    this.#decider.abort();
    this.#beganMs = this.#schedule.nowMs;
    const decider = new AbortController();
    this.#decider = decider;
    const clock = createVirtualClock(this.#schedule, (run) => run());
    const metrics = createMetrics({ defaults: false });
    const record = this.#record(decider.signal);
    const work = new BrakeDecider({ record, clock, metrics, log: silentLogger, everyMs: STEP_MS });
    work
      .run(decider.signal, () => {})
      .catch((error: unknown) => {
        if (!decider.signal.aborted) this.#fail(`the decider failed: ${String(error)}`);
      });
  }

  /** What the detectors find, and what they write. */
  #judge(): void {
    const { nowMs } = this.#schedule;
    for (const member of this.#members) {
      if (member.loss !== null || this.#goneMs(member) < member.lostAfterMs) continue;
      this.#lastLoss += 1;
      member.loss = this.#lastLoss;
      member.lostSinceMs = nowMs;
      member.reaction = "PENDING";
      member.reportedBefore = this.#sequences();
    }
  }

  /** The replicas' reports with their leases, some of them late. */
  #report(): void {
    for (let replica = 0; replica < REPLICAS; replica += 1) {
      if (this.#random() < 0.1) continue;
      const groups = new Map<string, GroupSum>();
      for (const member of this.#members) {
        if (member.replica !== replica || member.loss !== null) continue;
        const silent = this.#goneMs(member) > SILENT_AFTER_MS ? 1 : 0;
        for (const scope of [member.group, BRAKE_CLUSTER]) {
          const sum = groups.get(scope) ?? { healthy: 0, silent: 0 };
          groups.set(scope, { healthy: sum.healthy + 1, silent: sum.silent + silent });
        }
      }
      const instance = `r${replica}`;
      this.#reports.set(instance, { sequence: (this.#reports.get(instance)?.sequence ?? 0) + 1, groups });
    }
  }

  #record(signal: AbortSignal): BrakeRecord {
    const call = async <T>(carryOut: () => T): Promise<T> => {
      if (this.#random() < ERROR_SHARE) {
        // The decider starts over when the record is back.
        this.#beganMs = this.#schedule.nowMs;
        throw AWAY;
      }
      // The next decider holds the lease by then.
      if (signal.aborted) throw new Error("the brake's lease is another's");
      return carryOut();
    };
    return {
      list: () => call(() => [...this.#rows.values()]),
      lossBefore: (ms) => call(() => this.#lossBefore(ms)),
      read: (marks) => call(() => this.#read(marks)),
      saveChanges: (changes) =>
        call(() => {
          for (const { group, before, after: mode, size, windowLoss } of changes) {
            if (before === "NORMAL" && mode !== "NORMAL") this.#checkSet(group);
            const none = { frozen: null, orders: 0, followed: 0, orderedLoss: 0, orderedBy: "", orderReason: "" };
            this.#rows.set(group, { ...none, group, mode, size, windowLoss, sinceMs: this.#schedule.nowMs });
          }
        }),
      forget: (groups) =>
        call(() => {
          for (const group of groups) if (this.#rows.get(group)?.mode === "NORMAL") this.#rows.delete(group);
        }),
      release: (releases) => call(() => releases.flatMap((release) => this.#release(release))),
      releaseOrdered: () => call(() => 0),
      saveFollowed: () => call(() => {}),
    };
  }

  #sequences(): readonly number[] {
    return Array.from({ length: REPLICAS }, (_, replica) => this.#reports.get(`r${replica}`)?.sequence ?? 0);
  }

  #lossBefore(ms: number): number {
    const old = this.#members.filter(({ loss, lostSinceMs }) => {
      return loss !== null && lostSinceMs < this.#schedule.nowMs - ms;
    });
    return Math.max(0, ...old.map(({ loss }) => loss ?? 0));
  }

  #read({ settled, window, windows }: Parameters<BrakeRecord["read"]>[0]): BrakeReading {
    const ofCluster = windows.get(BRAKE_CLUSTER) ?? window;
    const losses: GroupLosses[] = GROUPS.map(([group]) => {
      const lost = this.#in(group).flatMap(({ loss }) => loss ?? []);
      const above = (mark: number) => lost.filter((loss) => loss > mark).length;
      const pending = this.#in(group).filter(({ reaction }) => reaction === "PENDING").length;
      return {
        group,
        lost: above(windows.get(group) ?? window),
        lostOfCluster: above(ofCluster),
        unsettled: above(settled),
        pending,
      };
    });
    const lastLoss = Math.max(0, ...this.#members.map(({ loss }) => loss ?? 0));
    return { reports: new Map(this.#reports), losses, lastLoss, rows: [...this.#rows.values()] };
  }

  #release({ group, most, upTo, brake }: BrakeRelease): readonly ReleasedReaction[] {
    const due = this.#in(group)
      .filter(({ reaction, loss }) => reaction === "PENDING" && loss !== null && loss <= upTo)
      .sort((one, other) => (one.loss ?? 0) - (other.loss ?? 0))
      .slice(0, most);
    return due.map((member) => {
      member.reaction = "ALLOWED";
      member.waitingSinceMs = null;
      const reports = this.#sequences().map((sequence, replica) => sequence - (member.reportedBefore[replica] ?? 0));
      if (Math.min(...reports) < REPORTS)
        this.#fail(`the reaction to ${member.id} went before all replicas had reported`);
      member.releasedAtMs = this.#schedule.nowMs;
      this.#releases += 1;
      for (const scope of [group, BRAKE_CLUSTER]) this.#checkRelease(member, scope);
      const { id: nodeId, lostSinceMs } = member;
      return { nodeId, group, lostSinceMs, reason: brake === "NORMAL" ? "NO_STORM" : "BRAKE_PACED" };
    });
  }

  /**
   * Of nodes that were lost together, a tenth may be released in a minute where they were most of those present, and
   * none where they were all.
   */
  #checkRelease(member: Member, scope: string): void {
    const { nowMs } = this.#schedule;
    const wentMs = member.goneSinceMs ?? nowMs;
    const before = this.#in(scope).filter(({ goneSinceMs }) => (goneSinceMs ?? nowMs) > wentMs - TOGETHER_MS);
    const storm = before.filter(({ goneSinceMs }) => goneSinceMs !== null && goneSinceMs < wentMs + TOGETHER_MS);
    if (before.length <= 2 || storm.length <= STORM_SHARE * before.length) return;
    if (storm.length === before.length) this.#fail(`the reaction to ${member.id} went though all of ${scope} are gone`);
    const recent = storm.filter(({ releasedAtMs }) => releasedAtMs !== null && nowMs - releasedAtMs < MINUTE_MS);
    // One that starts over does not know what another released in the last minute.
    const deciders = nowMs - this.#beganMs < MINUTE_MS ? 2 : 1;
    const most = deciders * Math.max(1, Math.floor(this.#in(scope).length / 10));
    if (recent.length > most)
      this.#fail(`${recent.length} reactions of ${scope} went in a minute of a storm, not ${most}`);
  }

  /** A brake is set for what is certain: most of those that were there a while ago are gone. */
  #checkSet(scope: string): void {
    const before = this.#in(scope).filter((it) => this.#goneMs(it) < MOST_LOST_AFTER_MS + 2 * MINUTE_MS);
    const { nowMs } = this.#schedule;
    const gone = before.filter(({ goneSinceMs, backAtMs }) => goneSinceMs !== null || nowMs - backAtMs < LATE_MS);
    if (gone.length >= CERTAIN_SHARE * before.length) return;
    this.#fail(`a brake is set though ${gone.length} of ${before.length} nodes of ${scope} are gone`);
  }

  /** A death far from any storm is released soon. */
  #checkWaiting(): void {
    const { nowMs } = this.#schedule;
    const stormy = new Set([...GROUPS.map(([group]) => group), BRAKE_CLUSTER].filter((scope) => this.#isUneasy(scope)));
    for (const member of this.#members) {
      const isNearStorm = stormy.has(member.group) || stormy.has(BRAKE_CLUSTER);
      if (member.reaction !== "PENDING" || isNearStorm) member.waitingSinceMs = null;
      else member.waitingSinceMs ??= nowMs;
      if (member.waitingSinceMs !== null && nowMs - member.waitingSinceMs > RELEASED_WITHIN_MS) {
        this.#fail(`the reaction to ${member.id} is held back without a storm`);
      }
    }
  }

  #isUneasy(scope: string): boolean {
    const members = this.#in(scope);
    // A small group has no brake of its own.
    if (members.length <= 2) return false;
    return members.filter(({ goneSinceMs }) => goneSinceMs !== null).length > CALM_SHARE * members.length;
  }

  #goneMs({ goneSinceMs }: Member): number {
    return goneSinceMs === null ? 0 : this.#schedule.nowMs - goneSinceMs;
  }

  #fail(message: string): void {
    this.#violation ??= `at ${this.#schedule.nowMs / 1_000} s: ${message}`;
  }
}
