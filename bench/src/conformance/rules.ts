import { toBinary } from "@bufbuild/protobuf";
import type { ExecutionReport, HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { executionsDigest } from "@rollcall/agent/work";

const MOST_FRAME_BYTES = 65_536;
/** Beats that were held up on their way may come at once; over so many that is no matter of chance. */
const BEATS_COUNTED = 8;
const BEAT_SLACK_MS = 400;
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
  #beats: number[] = [];
  #intervalMs = 0;
  /** Generations of settings that were sent and not told yet. */
  readonly #untold = new Set<number>();
  #toldTimeAtMs = Number.NEGATIVE_INFINITY;

  /** @param broken called with each rule that is broken. */
  constructor(broken: (rule: string) => void) {
    this.#broken = broken;
  }

  welcomed(intervalMs: number, generation: number): void {
    this.#isWelcomed = true;
    this.paced(intervalMs, generation);
  }

  /** The server has sent settings, or an Ack with another interval. */
  paced(intervalMs: number, generation: number | null): void {
    this.#beats = [];
    if (intervalMs > 0) this.#intervalMs = intervalMs;
    if (generation !== null) this.#untold.add(generation);
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
    this.#beats.push(nowMs);
    const first = this.#beats.at(-BEATS_COUNTED);
    const leastMs = (BEATS_COUNTED - 1) * this.#intervalMs - BEAT_SLACK_MS;
    // The first after a change of pace may come at once.
    if (this.#beats.length > BEATS_COUNTED && first !== undefined && nowMs - first < leastMs) {
      this.#broken(`${BEATS_COUNTED} Beats within ${Math.round(nowMs - first)} ms, at ${this.#intervalMs} ms each`);
    }
    if (beat.settingsGeneration === 0) return;
    if (!this.#untold.has(beat.settingsGeneration)) {
      this.#broken(`a Beat tells settings ${beat.settingsGeneration}, which were not sent or were told before`);
    }
    for (const one of this.#untold) if (one <= beat.settingsGeneration) this.#untold.delete(one);
  }

  #time(agentTimeMs: bigint, nowMs: number): void {
    if (agentTimeMs === 0n) return;
    if (nowMs - this.#toldTimeAtMs < TELL_TIME_EVERY_MS - BEAT_SLACK_MS) {
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
