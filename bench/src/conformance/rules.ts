import { toBinary } from "@bufbuild/protobuf";
import { executionsDigest } from "@rollcall/agent/work";
import type { ExecutionReport, HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";

const MOST_FRAME_BYTES = 65_536;
/** The tolerance for timers that fire early and for clocks that differ, in milliseconds. */
const SLACK_MS = 50;
const TELL_TIME_EVERY_MS = 60_000;

/** Checks the rules that apply to every stream of every scenario. */
export class StreamRules {
  readonly #broken: (rule: string) => void;
  #hasHello = false;
  #isOver = false;
  #isWelcomed = false;
  #sequence = 0;
  #reportNumber = 0n;
  #reportDigest = 0n;
  #observations = new Map<string, ExecutionObservation>();
  #part: ExecutionReport | null = null;
  /** Settings that were sent and that no Beat has confirmed yet, keyed by generation. */
  readonly #unconfirmed = new Map<number, { readonly sentAtMs: number; readonly intervalMs: number }>();
  /**
   * The settings that the agent follows, and the number of its Beats since it confirmed them. Null while the interval
   * of an Ack applies.
   */
  #pace: { readonly sentAtMs: number; readonly intervalMs: number; beats: number } | null = null;
  #toldTimeAtMs = Number.NEGATIVE_INFINITY;

  /** @param broken called for each broken rule, with its description. */
  constructor(broken: (rule: string) => void) {
    this.#broken = broken;
  }

  welcomed(intervalMs: number): void {
    this.#isWelcomed = true;
    this.sentSettings(intervalMs, 1);
  }

  /** Record that the server sends settings. */
  sentSettings(intervalMs: number, generation: number): void {
    this.#unconfirmed.set(generation, { sentAtMs: performance.now(), intervalMs });
  }

  /** Record that the server sends an Ack with another interval. Beats do not confirm such an interval. */
  sentInterval(): void {
    this.#pace = null;
  }

  frame(request: HeartbeatRequest, nowMs: number): void {
    const { frame } = request;
    if (toBinary(HeartbeatRequestSchema, request).length > MOST_FRAME_BYTES) this.#broken("a frame exceeds 64 KiB");
    if (this.#isOver) this.#broken(`a ${frame.case} follows a Goodbye`);
    if (frame.case === "hello") {
      if (this.#hasHello) this.#broken("a stream contains two Hellos");
      this.#hasHello = true;
      this.#time(frame.value.agentTimeMs, nowMs);
      return;
    }
    if (!this.#hasHello) this.#broken(`the first frame is a ${frame.case}, not a Hello`);
    if (!this.#isWelcomed && frame.case !== "goodbye") this.#broken(`a ${frame.case} precedes the Welcome`);
    if (frame.case === "beat") this.#beat(frame.value, nowMs);
    if (frame.case === "executionReport") this.#report(frame.value);
    if (frame.case === "goodbye") this.#isOver = true;
  }

  #beat(
    beat: {
      readonly sequence: number;
      readonly settingsGeneration: number;
      readonly executionsDigest: bigint;
      readonly agentTimeMs: bigint;
    },
    nowMs: number,
  ): void {
    if (beat.sequence !== this.#sequence + 1) {
      this.#broken(`the sequence jumps from ${this.#sequence} to ${beat.sequence}`);
    }
    this.#sequence = beat.sequence;
    if (beat.executionsDigest !== this.#reportDigest)
      this.#broken("a Beat's digest differs from that of the last report");
    this.#time(beat.agentTimeMs, nowMs);
    this.#keepsPace(nowMs);
    if (beat.settingsGeneration === 0) return;
    const told = this.#unconfirmed.get(beat.settingsGeneration);
    if (told === undefined) {
      this.#broken(
        `a Beat confirms settings ${beat.settingsGeneration}, which were never sent or are already confirmed`,
      );
      return;
    }
    this.#pace = { ...told, beats: 0 };
    for (const one of this.#unconfirmed.keys()) if (one <= beat.settingsGeneration) this.#unconfirmed.delete(one);
  }

  /**
   * Check that the Beat that confirms settings arrives after they were sent, and that each later Beat arrives at least
   * one interval after the previous one. A Beat can be late, even so late that it arrives together with the next one,
   * but never early.
   */
  #keepsPace(nowMs: number): void {
    const pace = this.#pace;
    if (pace === null) return;
    pace.beats += 1;
    if (nowMs - pace.sentAtMs < pace.beats * pace.intervalMs - SLACK_MS) {
      this.#broken(
        `${pace.beats} Beats ${Math.round(nowMs - pace.sentAtMs)} ms after settings of ${pace.intervalMs} ms`,
      );
    }
  }

  #time(agentTimeMs: bigint, nowMs: number): void {
    if (agentTimeMs === 0n) return;
    if (nowMs - this.#toldTimeAtMs < TELL_TIME_EVERY_MS / 2) {
      this.#broken("the wall time is reported more than once a minute");
    }
    this.#toldTimeAtMs = nowMs;
  }

  #report(report: ExecutionReport): void {
    const part = this.#part;
    if (part === null && report.number !== this.#reportNumber + 1n) {
      this.#broken(`the report number jumps from ${this.#reportNumber} to ${report.number}`);
    }
    if (part !== null && (part.number !== report.number || part.digest !== report.digest)) {
      this.#broken("the parts of a report differ in number or digest");
    }
    if (part === null && report.whole) this.#observations = new Map();
    for (const one of report.observations) {
      const before = this.#observations.get(one.id);
      if (before !== undefined && one.change < before.change) this.#broken(`the change counter of ${one.id} decreases`);
      if (before?.state === ObservedState.ENDED && one.state !== ObservedState.ENDED) {
        this.#broken(`${one.id} has ended and is reported again`);
      }
      this.#observations.set(one.id, one);
    }
    this.#part = report.more ? report : null;
    if (report.more) return;
    this.#reportNumber = report.number;
    this.#reportDigest = report.digest;
    // A report of changes omits forgotten executions, so only a complete report must match exactly.
    if (report.whole && executionsDigest([...this.#observations.values()]) !== report.digest) {
      this.#broken("the digest of a complete report differs from that of its executions");
    }
  }
}
