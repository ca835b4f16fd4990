import { toBinary } from "@bufbuild/protobuf";
import { executionsDigest } from "@rollcall/agent/work";
import type { ExecutionReport, HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";

const MOST_FRAME_BYTES = 65_536;
/** What timers may be early, and clocks apart. */
const SLACK_MS = 50;
const TELL_TIME_EVERY_MS = 60_000;

/** What holds for every stream of every scenario. */
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
  /** Settings that were sent and not told yet, by their generations. */
  readonly #untold = new Map<number, { readonly sentAtMs: number; readonly intervalMs: number }>();
  /** Those that the agent keeps to, and its Beats since it said so; null while an Ack's interval is in force. */
  #pace: { readonly sentAtMs: number; readonly intervalMs: number; beats: number } | null = null;
  #toldTimeAtMs = Number.NEGATIVE_INFINITY;

  /** @param broken called with each rule that is broken. */
  constructor(broken: (rule: string) => void) {
    this.#broken = broken;
  }

  welcomed(intervalMs: number): void {
    this.#isWelcomed = true;
    this.sentSettings(intervalMs, 1);
  }

  /** The server sends settings now. */
  sentSettings(intervalMs: number, generation: number): void {
    this.#untold.set(generation, { sentAtMs: performance.now(), intervalMs });
  }

  /** The server sends an Ack with another interval, which no Beat tells. */
  sentInterval(): void {
    this.#pace = null;
  }

  frame(request: HeartbeatRequest, nowMs: number): void {
    const { frame } = request;
    if (toBinary(HeartbeatRequestSchema, request).length > MOST_FRAME_BYTES) this.#broken("a frame is above 64 KiB");
    if (this.#isOver) this.#broken(`a ${frame.case} follows the Goodbye`);
    if (frame.case === "hello") {
      if (this.#hasHello) this.#broken("a stream has two Hellos");
      this.#hasHello = true;
      this.#time(frame.value.agentTimeMs, nowMs);
      return;
    }
    if (!this.#hasHello) this.#broken(`the first frame is a ${frame.case}, not a Hello`);
    if (!this.#isWelcomed && frame.case !== "goodbye") this.#broken(`a ${frame.case} comes before the Welcome`);
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
      this.#broken(`the sequence goes from ${this.#sequence} to ${beat.sequence}`);
    }
    this.#sequence = beat.sequence;
    if (beat.executionsDigest !== this.#reportDigest) this.#broken("a Beat has another digest than the last report");
    this.#time(beat.agentTimeMs, nowMs);
    this.#keepsPace(nowMs);
    if (beat.settingsGeneration === 0) return;
    const told = this.#untold.get(beat.settingsGeneration);
    if (told === undefined) {
      this.#broken(`a Beat tells settings ${beat.settingsGeneration}, which were not sent or were told before`);
      return;
    }
    this.#pace = { ...told, beats: 0 };
    for (const one of this.#untold.keys()) if (one <= beat.settingsGeneration) this.#untold.delete(one);
  }

  /**
   * The Beat that tells settings comes after they were sent, and each one after it an interval later. Beats that are
   * held up on their way come late and together, but none comes before its time.
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
      this.#broken("the wall time is told more often than once a minute");
    }
    this.#toldTimeAtMs = nowMs;
  }

  #report(report: ExecutionReport): void {
    const part = this.#part;
    if (part === null && report.number !== this.#reportNumber + 1n) {
      this.#broken(`the number of reports goes from ${this.#reportNumber} to ${report.number}`);
    }
    if (part !== null && (part.number !== report.number || part.digest !== report.digest)) {
      this.#broken("the parts of a report differ in number or digest");
    }
    if (part === null && report.whole) this.#observations = new Map();
    for (const one of report.observations) {
      const before = this.#observations.get(one.id);
      if (before !== undefined && one.change < before.change) this.#broken(`the changes of ${one.id} fall`);
      if (before?.state === ObservedState.ENDED && one.state !== ObservedState.ENDED) {
        this.#broken(`${one.id} has ended and is there again`);
      }
      this.#observations.set(one.id, one);
    }
    this.#part = report.more ? report : null;
    if (report.more) return;
    this.#reportNumber = report.number;
    this.#reportDigest = report.digest;
    // A change report leaves out what was forgotten, so only a whole one is the same for certain.
    if (report.whole && executionsDigest([...this.#observations.values()]) !== report.digest) {
      this.#broken("a whole report has another digest than its executions");
    }
  }
}
