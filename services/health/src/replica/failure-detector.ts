import {
  DEFAULT_STREAM_LOSS_LIMITS,
  Detector,
  type Due,
  type HealthState,
  ObservedTime,
  StreamLoss,
  type Thresholds,
  type Timing,
} from "@rollcall/domain";
import type { Clock } from "@rollcall/process";
import type { HealthMetrics } from "../metrics.ts";
import type { LiveNode } from "./live-node.ts";
import type { LiveNodes } from "./live-nodes.ts";
import { QuietStreams } from "./quiet-streams.ts";

export interface FailureDetectorOptions {
  readonly clock: Clock;
  /** The interval between calls of evaluate(). */
  readonly tickMs: number;
  readonly metrics: HealthMetrics;
  /**
   * How long to suspend health decisions when many streams break at the same time, because this process's own network
   * is then in doubt. Default 30 s.
   */
  readonly doubtMs?: number;
}

const DEFAULT_DOUBT_MS = 30_000;

/** Number of ticks that can pass between two calls of evaluate() before time counts as lost. */
const TICKS_IN_GAP = 2;

/** Times the silence of nodes. Counts time only while this process could have received their frames. */
export class FailureDetector {
  /** Streams that must send a frame within a time limit. */
  readonly streams = new QuietStreams();
  readonly #options: FailureDetectorOptions;
  readonly #observed: ObservedTime;
  readonly #detector: Detector<LiveNode>;
  #lastTickMs: number;
  readonly #loss = new StreamLoss(DEFAULT_STREAM_LOSS_LIMITS);
  #doubtUntilMs = Number.NEGATIVE_INFINITY;
  #turnedAwayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: FailureDetectorOptions) {
    const startMs = options.clock.nowMs();
    this.#options = options;
    this.#observed = new ObservedTime({ startMs, maxGapMs: options.tickMs * TICKS_IN_GAP });
    this.#detector = new Detector({ tickMs: options.tickMs });
    this.#lastTickMs = startMs;
  }

  /** Whether health decisions are suspended. */
  get isSuspended(): boolean {
    return this.#observed.suspended;
  }

  /** The observed time at a given real time. */
  at(realMs: number): number {
    return this.#observed.at(realMs);
  }

  /** The current observed time. */
  nowMs(): number {
    return this.#observed.at(this.#options.clock.nowMs());
  }

  /** Start timing a node, with its full grace period. */
  track(node: LiveNode, health: HealthState, thresholds: Thresholds): Timing<LiveNode> {
    return this.#detector.track(node, { health, lastReceivedMs: this.nowMs(), thresholds });
  }

  untrack({ timing }: LiveNode): void {
    this.#detector.untrack(timing);
  }

  /** Record a frame at an observed time. O(1), without allocation. */
  heard({ timing }: LiveNode, observedMs: number): void {
    this.#detector.touch(timing, observedMs);
  }

  /** Set a node's health. Its silence is timed from now on. */
  declare({ timing }: LiveNode, health: HealthState): void {
    this.#detector.declare(timing, health, this.nowMs());
  }

  setThresholds({ timing }: LiveNode, thresholds: Thresholds): void {
    if (thresholds !== timing.thresholds) this.#detector.setThresholds(timing, thresholds);
  }

  /**
   * Record that a Hello was turned away through no fault of its node: the node gets `retryAfterMs` plus its full grace
   * period to return.
   */
  turnedAway(node: LiveNode | undefined, retryAfterMs: number): void {
    if (node !== undefined) {
      this.#options.metrics.deadlineExtended("turned_away", retryAfterMs);
    }
    const untilMs = this.#options.clock.nowMs() + retryAfterMs;
    this.#turnedAwayUntilMs = Math.max(this.#turnedAwayUntilMs, untilMs);
    if (node !== undefined) this.#detector.touch(node.timing, this.nowMs() + retryAfterMs);
  }

  /** Record that a stream broke without being ended by this side. `streams` is the number of streams still open. */
  broken(streams: number): void {
    const nowMs = this.#options.clock.nowMs();
    if (this.#loss.onBroken(nowMs, streams)) this.#doubtOwnNetwork(nowMs);
  }

  /** Suspend health decisions. Every node's deadline will be extended by the time since `sinceMs` of the real clock. */
  suspend(sinceMs: number): void {
    this.#observed.suspend(sinceMs);
  }

  /** Resume health decisions, and extend every node's deadline by the lost time. */
  resume(): void {
    if (!this.#observed.suspended) return;
    const { metrics, clock } = this.#options;
    const lostMs = this.#observed.resume(clock.nowMs());
    metrics.observationLost(lostMs);
    if (lostMs > 0) metrics.deadlineExtended("lease", lostMs);
  }

  /**
   * Return the nodes that have been silent for too long, and notify streams that exceeded their time limit. Nothing is
   * observed while a tick is late, so every node's deadline is extended by the excess over two ticks.
   */
  evaluate(nodes: LiveNodes): readonly Due<LiveNode>[] {
    const { clock, tickMs, metrics } = this.#options;
    const nowMs = clock.nowMs();
    metrics.loopLag(Math.max(0, nowMs - this.#lastTickMs - tickMs));
    this.#lastTickMs = nowMs;
    const lostMs = this.#observed.advance(nowMs);
    if (lostMs > 0) {
      metrics.observationLost(lostMs);
      // Do not count time during a doubt about this process's own network, because that time was counted when the doubt
      // began.
      if (nowMs - tickMs >= this.#doubtUntilMs) metrics.deadlineExtended("stall", lostMs);
    }
    if (this.#observed.suspended) return [];
    const observedMs = this.#observed.at(nowMs);
    this.streams.advance(observedMs);
    const isTurningAway = nowMs < this.#turnedAwayUntilMs;
    const dues = this.#detector.advance(observedMs);
    if (this.#isOwnTrouble(dues, nodes, observedMs)) {
      for (const due of dues) this.#putOff(due, observedMs);
      return [];
    }
    return dues.filter((due) => {
      if (isTurningAway && isAdopted(due.timing.subject)) {
        // The Hello of this node may have been turned away unread, so restart its grace period.
        this.declare(due.timing.subject, due.from);
        return false;
      }
      metrics.detectionDelay(observedMs - due.deadlineMs);
      return true;
    });
  }

  /**
   * Whether enough streams are silent to doubt this process's own network. Counts them only when a declaration is due.
   */
  #isOwnTrouble(dues: readonly Due<LiveNode>[], nodes: LiveNodes, observedMs: number): boolean {
    const nowMs = this.#options.clock.nowMs();
    const isAboutStreams = dues.some(({ timing }) => timing.subject.stream !== null);
    if (!isAboutStreams || !this.#loss.mayDoubt(nowMs)) return false;
    if (!this.#loss.onSilent(nowMs, nodes.countSilent(observedMs), nodes.sessions)) return false;
    this.#doubtOwnNetwork(nowMs);
    return true;
  }

  /** Declare no node unhealthy for a while, and extend every node's deadline by that time. */
  #doubtOwnNetwork(nowMs: number): void {
    const { doubtMs = DEFAULT_DOUBT_MS, metrics } = this.#options;
    metrics.deadlineExtended("network", doubtMs);
    this.#observed.standStill(nowMs, doubtMs);
    this.#doubtUntilMs = nowMs + doubtMs;
  }

  /** Make a node due again as soon as observed time resumes. */
  #putOff({ timing, from, to }: Due<LiveNode>, observedMs: number): void {
    const { unhealthyAfterMs, unknownAfterMs } = timing.thresholds;
    const afterMs = to === "UNHEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    this.#detector.declare(timing, from, observedMs - afterMs + this.#options.tickMs);
  }
}

/** Whether a node was adopted and has not connected to this replica since. */
function isAdopted(node: LiveNode): boolean {
  return node.publicKey === null;
}
