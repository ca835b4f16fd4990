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
import type { HeldNode } from "./held-node.ts";
import type { HeldNodes } from "./held-nodes.ts";
import { QuietStreams } from "./quiet-streams.ts";

export interface SilenceOptions {
  readonly clock: Clock;
  /** Between two calls of judge(). */
  readonly tickMs: number;
  readonly metrics: HealthMetrics;
  /**
   * How long no node is judged after so many streams broke at once that this process's own network is in doubt. Default
   * 30 s.
   */
  readonly doubtMs?: number;
}

const DEFAULT_DOUBT_MS = 30_000;

/** How many ticks may pass between two judgements before time counts as lost. */
const TICKS_IN_GAP = 2;

/** Times the silence of nodes, in the time in which this process could have heard them. */
export class Silence {
  /** Streams that must send a frame. */
  readonly streams = new QuietStreams();
  readonly #options: SilenceOptions;
  readonly #observed: ObservedTime;
  readonly #detector: Detector<HeldNode>;
  #lastTickMs: number;
  readonly #loss = new StreamLoss(DEFAULT_STREAM_LOSS_LIMITS);
  #doubtUntilMs = Number.NEGATIVE_INFINITY;
  #turnedAwayUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: SilenceOptions) {
    const startMs = options.clock.nowMs();
    this.#options = options;
    this.#observed = new ObservedTime({ startMs, maxGapMs: options.tickMs * TICKS_IN_GAP });
    this.#detector = new Detector({ tickMs: options.tickMs });
    this.#lastTickMs = startMs;
  }

  /** Whether judging is suspended. */
  get isSuspended(): boolean {
    return this.#observed.suspended;
  }

  /** The observed time at a real one. */
  at(realMs: number): number {
    return this.#observed.at(realMs);
  }

  /** The observed time now. */
  nowMs(): number {
    return this.#observed.at(this.#options.clock.nowMs());
  }

  /** Begin to time a node, with its full grace. */
  track(node: HeldNode, health: HealthState, thresholds: Thresholds): Timing<HeldNode> {
    return this.#detector.track(node, { health, lastReceivedMs: this.nowMs(), thresholds });
  }

  untrack({ timing }: HeldNode): void {
    this.#detector.untrack(timing);
  }

  /** Note a frame, at an observed time. O(1), without allocation. */
  heard({ timing }: HeldNode, observedMs: number): void {
    this.#detector.touch(timing, observedMs);
  }

  /** Set a node's health. Its silence is timed from now. */
  declare({ timing }: HeldNode, health: HealthState): void {
    this.#detector.declare(timing, health, this.nowMs());
  }

  /** Set a node's thresholds. */
  setThresholds({ timing }: HeldNode, thresholds: Thresholds): void {
    if (thresholds !== timing.thresholds) this.#detector.setThresholds(timing, thresholds);
  }

  /** A Hello was turned away through no fault of its node: the node has `retryAfterMs` and its full grace to return. */
  turnedAway(node: HeldNode | undefined, retryAfterMs: number): void {
    if (node !== undefined) {
      this.#options.metrics.deadlineExtended("turned_away", retryAfterMs);
    }
    const untilMs = this.#options.clock.nowMs() + retryAfterMs;
    this.#turnedAwayUntilMs = Math.max(this.#turnedAwayUntilMs, untilMs);
    if (node !== undefined) this.#detector.touch(node.timing, this.nowMs() + retryAfterMs);
  }

  /** A stream broke that this side did not end. `streams` counts those still open. */
  broken(streams: number): void {
    const nowMs = this.#options.clock.nowMs();
    if (this.#loss.onBroken(nowMs, streams)) this.#doubtOwnNetwork(nowMs);
  }

  /** Suspend judging. The time since `sinceMs` of the real clock will be granted to every node. */
  suspend(sinceMs: number): void {
    this.#observed.suspend(sinceMs);
  }

  /** Resume judging, and grant every node the lost time. */
  resume(): void {
    if (!this.#observed.suspended) return;
    const { metrics, clock } = this.#options;
    const lostMs = this.#observed.resume(clock.nowMs());
    metrics.observationLost(lostMs);
    if (lostMs > 0) metrics.deadlineExtended("lease", lostMs);
  }

  /**
   * Return the nodes, and call the streams, that are silent for too long. Nothing is observed while a tick is late, so
   * what exceeds two ticks is granted to every node.
   */
  judge(nodes: HeldNodes): readonly Due<HeldNode>[] {
    const { clock, tickMs, metrics } = this.#options;
    const nowMs = clock.nowMs();
    metrics.loopLag(Math.max(0, nowMs - this.#lastTickMs - tickMs));
    this.#lastTickMs = nowMs;
    const lostMs = this.#observed.advance(nowMs);
    if (lostMs > 0) {
      metrics.observationLost(lostMs);
      // A doubt about the own network was counted as a whole when it began.
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
        // It may be among those that were turned away unheard: restart its grace.
        this.declare(due.timing.subject, due.from);
        return false;
      }
      metrics.detectionDelay(observedMs - due.deadlineMs);
      return true;
    });
  }

  /** Whether so many streams are silent that a doubt begins now. Counted only when a declaration is due. */
  #isOwnTrouble(dues: readonly Due<HeldNode>[], nodes: HeldNodes, observedMs: number): boolean {
    const nowMs = this.#options.clock.nowMs();
    const isAboutStreams = dues.some(({ timing }) => timing.subject.stream !== null);
    if (!isAboutStreams || !this.#loss.mayDoubt(nowMs)) return false;
    if (!this.#loss.onSilent(nowMs, nodes.countSilent(observedMs), nodes.sessions)) return false;
    this.#doubtOwnNetwork(nowMs);
    return true;
  }

  /** Judge no node for a while, and grant every node that time. */
  #doubtOwnNetwork(nowMs: number): void {
    const { doubtMs = DEFAULT_DOUBT_MS, metrics } = this.#options;
    metrics.deadlineExtended("network", doubtMs);
    this.#observed.standStill(nowMs, doubtMs);
    this.#doubtUntilMs = nowMs + doubtMs;
  }

  /** Make a node due again as soon as time continues. */
  #putOff({ timing, from, to }: Due<HeldNode>, observedMs: number): void {
    const { unhealthyAfterMs, unknownAfterMs } = timing.thresholds;
    const afterMs = to === "UNHEALTHY" ? unhealthyAfterMs : unknownAfterMs;
    this.#detector.declare(timing, from, observedMs - afterMs + this.#options.tickMs);
  }
}

/** Whether a node was adopted and has not connected here since. */
function isAdopted(node: HeldNode): boolean {
  return node.publicKey === null;
}
