import {
  BRAKE_CLUSTER,
  type BrakeReading,
  type BrakeRelease,
  type BrakeRow,
  type GroupLosses,
  type GroupSum,
  seededRandom,
} from "@rollcall/domain";
import type { BrakeStore, ReleasedReaction } from "@rollcall/health/parts";
import { Schedule } from "../schedule.ts";
import { BrakeLease, type BrakeProcess, type BrakeWorld } from "./brake-process.ts";
import { BrakeProcesses } from "./brake-processes.ts";

/** The real and the stored state of one node. */
interface Member {
  readonly id: string;
  readonly group: string;
  readonly replica: number;
  /** Time without heartbeats after which the node is declared lost. */
  readonly lostAfterMs: number;
  /** The sequence of each replica's last report before the loss. */
  reportedBefore: readonly number[];
  /** Since when the node is gone; null while it sends heartbeats. */
  goneSinceMs: number | null;
  /** When the node last came back. */
  backAtMs: number;
  reaction: "PENDING" | "ALLOWED" | null;
  /** The number of the node's loss; null while the node is HEALTHY in the store. */
  loss: number | null;
  lostSinceMs: number;
  /** When the node's last reaction was released. */
  releasedAtMs: number | null;
  /** Since when the node's reaction is pending without a storm nearby, so that it could have been released. */
  waitingSinceMs: number | null;
}

const STEP_MS = 1_000;
const SILENT_AFTER_MS = 30_000;
const LEAST_LOST_AFTER_MS = 60_000;
const MOST_LOST_AFTER_MS = 90_000;
const REPORT_EVERY_STEPS = 2;
const CHECK_EVERY_STEPS = 5;
const REPLICAS = 2;
/**
 * Number of reports to wait for after a loss. The first report may have begun before the loss; the second one began
 * after it.
 */
const REPORTS = 2;
const GROUPS: readonly (readonly [string, number])[] = [
  ["zone=a", 30],
  ["zone=b", 12],
  ["zone=c", 2],
];
const MINUTE_MS = 60_000;
/**
 * Period in which releases are counted. A minute minus the longest delay between a decision and its write, because the
 * brake counts a minute from the decisions.
 */
const COUNTED_MS = MINUTE_MS - 12_000;
/** Nodes that are lost within this time of each other belong to the same outage. */
const TOGETHER_MS = 5_000;
/**
 * The share of the present nodes that must be lost together for this check to count a storm. It is higher than the
 * brake's own share, so that every storm in this check is also one for the brake.
 */
const STORM_SHARE = 0.6;
/**
 * The share of present nodes that must be gone when a brake is set. It is below the brake's own share, because some
 * nodes may have come back since they were counted.
 */
const CERTAIN_SHARE = 0.4;
/** The maximum age of a count. */
const LATE_MS = 15_000;
const CALM_SHARE = 0.3;
const RELEASED_WITHIN_MS = 60_000;

/**
 * Run the shipped brake processes over a cluster whose nodes die one by one and together. The processes are stopped,
 * killed, restarted and cut off from the store. Returns the broken invariant; null for none.
 */
export async function simulateBrake(options: { readonly seed: number; readonly durationMs: number }) {
  const simulation = new BrakeSimulation(options.seed);
  await simulation.run(options.durationMs);
  return simulation.decision();
}

class BrakeSimulation implements BrakeWorld {
  readonly schedule = new Schedule(STEP_MS);
  readonly lease = new BrakeLease();
  readonly #random: () => number;
  readonly #members: readonly Member[];
  readonly #rows = new Map<string, BrakeRow>();
  readonly #reports = new Map<string, { sequence: number; groups: ReadonlyMap<string, GroupSum> }>();
  #lastLoss = 0;
  /**
   * Times at which a process began to decide about reactions. Such a process does not know how many reactions the
   * previous process released.
   */
  #begunMs: readonly number[] = [];
  readonly #processes = new BrakeProcesses(this);
  #writes = 0;
  /** The number of each process's last write. */
  readonly #lastWrites = new Map<string, number>();
  #releases = 0;
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
    this.#processes.start();
    while (this.schedule.nowMs < durationMs && this.#violation === null) {
      this.#befall();
      this.#processes.disturb();
      this.#evaluate();
      if (this.schedule.steps % REPORT_EVERY_STEPS === 0) this.#report();
      await this.schedule.advance();
      this.#processes.checkTrust();
      if (this.schedule.steps % CHECK_EVERY_STEPS !== 0) continue;
      this.#processes.checkDecided();
      this.#checkWaiting();
    }
    this.#processes.crash();
  }

  decision() {
    return { releases: this.#releases, violation: this.#violation };
  }

  random(): number {
    return this.#random();
  }

  /** Randomly kill one node, or some or all nodes of a group or of the cluster. */
  #befall(): void {
    const chance = this.#random();
    if (chance < 0.004) this.#kill([this.#any()]);
    else if (chance < 0.0045) this.#kill(this.#some(BRAKE_CLUSTER));
    else if (chance < 0.006) this.#kill(this.#some(this.#any().group));
  }

  #kill(members: readonly Member[]): void {
    const { nowMs } = this.schedule;
    // Half of the time, all nodes come back together, as after a switch failure; otherwise one by one.
    const togetherMs = this.#random() < 0.5 ? this.#goneForMs() : null;
    for (const member of members) {
      if (member.goneSinceMs !== null) continue;
      member.goneSinceMs = nowMs;
      this.schedule.after(togetherMs ?? this.#goneForMs(), () => {
        member.goneSinceMs = null;
        member.backAtMs = this.schedule.nowMs;
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

  /** All nodes of a group or of the cluster, or a random part of them. */
  #some(scope: string): readonly Member[] {
    const share = this.#random() < 0.3 ? 1 : 0.3 + 0.7 * this.#random();
    return this.#in(scope).filter(() => this.#random() < share);
  }

  #in(scope: string): readonly Member[] {
    return scope === BRAKE_CLUSTER ? this.#members : this.#members.filter(({ group }) => group === scope);
  }

  /** Store the losses of nodes that have been gone for too long. */
  #evaluate(): void {
    const { nowMs } = this.schedule;
    for (const member of this.#members) {
      if (member.loss !== null || this.#goneMs(member) < member.lostAfterMs) continue;
      this.#lastLoss += 1;
      member.loss = this.#lastLoss;
      member.lostSinceMs = nowMs;
      member.reaction = "PENDING";
      member.reportedBefore = this.#sequences();
    }
  }

  /** Store the reports that replicas send with their lease renewals; some are late. */
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

  recordOf(process: BrakeProcess): BrakeStore {
    const write = async <T>(carryOut: () => T): Promise<T> => {
      if (this.lease.holder !== process.instance) throw new Error("another process holds the brake's lease");
      this.#checkWriter(process);
      return carryOut();
    };
    return {
      list: async () => {
        process.begunAtWrite = this.#writes;
        this.#begunMs = [...this.#begunMs.slice(-9), this.schedule.nowMs];
        return [...this.#rows.values()];
      },
      lossBefore: async (ms) => this.#lossBefore(ms),
      read: async (marks) => this.#read(marks),
      saveChanges: (changes) =>
        write(() => {
          for (const { group, before, after: mode, size, windowLoss } of changes) {
            if (before === "NORMAL" && mode !== "NORMAL") this.#checkSet(group);
            const none = { frozen: null, orders: 0, followed: 0, orderedLoss: 0, orderedBy: "", orderReason: "" };
            this.#rows.set(group, { ...none, group, mode, size, windowLoss, sinceMs: this.schedule.nowMs });
          }
        }),
      forget: (groups) =>
        write(() => {
          for (const group of groups) if (this.#rows.get(group)?.mode === "NORMAL") this.#rows.delete(group);
        }),
      release: (releases) => write(() => releases.flatMap((release) => this.#release(release))),
      releaseOrdered: () => write(() => 0),
      saveFollowed: () => write(() => {}),
    };
  }

  /**
   * Check that no two processes write at the same time: a process that takes over must have begun after the last write
   * of the previous one.
   */
  #checkWriter({ instance, begunAtWrite }: BrakeProcess): void {
    for (const [other, write] of this.#lastWrites) {
      if (other === instance || write <= begunAtWrite) continue;
      this.fail(`${instance} overwrites the brake with a state older than ${other}'s last write`);
    }
    this.#writes += 1;
    this.#lastWrites.set(instance, this.#writes);
  }

  #sequences(): readonly number[] {
    return Array.from({ length: REPLICAS }, (_, replica) => this.#reports.get(`r${replica}`)?.sequence ?? 0);
  }

  #lossBefore(ms: number): number {
    const old = this.#members.filter(({ loss, lostSinceMs }) => {
      return loss !== null && lostSinceMs < this.schedule.nowMs - ms;
    });
    return Math.max(0, ...old.map(({ loss }) => loss ?? 0));
  }

  #read({ settled, window, windows }: Parameters<BrakeStore["read"]>[0]): BrakeReading {
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
        this.fail(`the reaction to ${member.id} was released before all replicas had reported`);
      member.releasedAtMs = this.schedule.nowMs;
      this.#releases += 1;
      for (const scope of [group, BRAKE_CLUSTER]) this.#checkRelease(member, scope);
      const { id: nodeId, lostSinceMs } = member;
      return { nodeId, group, lostSinceMs, reason: brake === "NORMAL" ? "NO_STORM" : "BRAKE_PACED" };
    });
  }

  /**
   * Check a release. When most of the present nodes were lost together, at most a tenth may be released per minute;
   * when all were lost together, none.
   */
  #checkRelease(member: Member, scope: string): void {
    const { nowMs } = this.schedule;
    const wentMs = member.goneSinceMs ?? nowMs;
    const before = this.#in(scope).filter(({ goneSinceMs }) => (goneSinceMs ?? nowMs) > wentMs - TOGETHER_MS);
    const storm = before.filter(({ goneSinceMs }) => goneSinceMs !== null && goneSinceMs < wentMs + TOGETHER_MS);
    if (before.length <= 2 || storm.length <= STORM_SHARE * before.length) return;
    // Nodes lost shortly before the storm also count as present, but not as part of the storm.
    const isWhole = !this.#in(scope).some((it) => it.lostSinceMs > wentMs - MINUTE_MS && !before.includes(it));
    if (storm.length === before.length && isWhole)
      this.fail(`the reaction to ${member.id} was released although all nodes of ${scope} are gone`);
    const recent = storm.filter(({ releasedAtMs }) => releasedAtMs !== null && nowMs - releasedAtMs < COUNTED_MS);
    // Allow the full number for each process that decided in the last minute, because a process that takes over does
    // not know what another process has released in that time.
    const deciders = 1 + this.#begunMs.filter((ms) => nowMs - ms < MINUTE_MS).length;
    const most = deciders * Math.max(1, Math.floor(this.#in(scope).length / 10));
    if (recent.length > most)
      this.fail(`${recent.length} reactions of ${scope} were released in a minute of a storm; the limit is ${most}`);
  }

  /** Check that a brake is set only when most of the recently present nodes are certainly gone. */
  #checkSet(scope: string): void {
    const before = this.#in(scope).filter((it) => this.#goneMs(it) < MOST_LOST_AFTER_MS + 2 * MINUTE_MS);
    const { nowMs } = this.schedule;
    const gone = before.filter(({ goneSinceMs, backAtMs }) => goneSinceMs !== null || nowMs - backAtMs < LATE_MS);
    if (gone.length >= CERTAIN_SHARE * before.length) return;
    this.fail(`a brake is set although only ${gone.length} of ${before.length} nodes of ${scope} are gone`);
  }

  /** Check that a reaction is released soon when no storm is near. */
  #checkWaiting(): void {
    const { nowMs } = this.schedule;
    const { isDecided } = this.#processes;
    const stormy = new Set([...GROUPS.map(([group]) => group), BRAKE_CLUSTER].filter((scope) => this.#isUneasy(scope)));
    for (const member of this.#members) {
      const isNearStorm = stormy.has(member.group) || stormy.has(BRAKE_CLUSTER);
      if (member.reaction !== "PENDING" || isNearStorm) member.waitingSinceMs = null;
      else member.waitingSinceMs ??= nowMs;
      // Count from the last takeover at the earliest, because a process that takes over counts only the reports since
      // it began.
      const sinceMs = Math.max(member.waitingSinceMs ?? nowMs, this.#begunMs.at(-1) ?? 0);
      if (isDecided && nowMs - sinceMs > RELEASED_WITHIN_MS) {
        this.fail(`the reaction to ${member.id} is held back without a storm`);
      }
    }
  }

  #isUneasy(scope: string): boolean {
    const members = this.#in(scope);
    // Skip a small group, because it has no separate brake.
    if (members.length <= 2) return false;
    return members.filter(({ goneSinceMs }) => goneSinceMs !== null).length > CALM_SHARE * members.length;
  }

  #goneMs({ goneSinceMs }: Member): number {
    return goneSinceMs === null ? 0 : this.schedule.nowMs - goneSinceMs;
  }

  fail(message: string): void {
    this.#violation ??= `at ${this.schedule.nowMs / 1_000} s: ${message}`;
  }
}
