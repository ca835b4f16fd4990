import { create, toBinary } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { messageFrame } from "./http2-frames.ts";

const GPUS = [0, 1];
/** The id of the only call on a connection. It is always the client's first stream. */
const STREAM_ID = 1;

/**
 * Create a Beat with the usage of a machine with two GPUs, as an agent sends it. Only the first Beat of a stream
 * contains totals.
 */
function beatRequest(sequence: number, executionsDigest: bigint): HeartbeatRequest {
  const totals = sequence === 1;
  const wobble = sequence % 10;
  return create(HeartbeatRequestSchema, {
    frame: {
      case: "beat",
      value: {
        sequence,
        executionsDigest,
        usage: {
          cpuPercent: 30.5 + wobble,
          memoryUsedMib: 181_000 + wobble,
          memoryTotalMib: totals ? 773_000 : 0,
          diskUsedMib: 412_000 + wobble,
          diskTotalMib: totals ? 1_907_000 : 0,
          temperatureAverageCelsius: 51.5 + wobble,
          temperatureMaxCelsius: 68 + wobble,
          gpus: GPUS.map((index) => ({
            index,
            utilizationPercent: 85 + wobble,
            memoryUsedMib: 61_000 + wobble,
            memoryTotalMib: totals ? 81_559 : 0,
            temperatureCelsius: 58 + wobble,
          })),
        },
      },
    },
  });
}

/** Encoded frames of Beats. All agents share them, because a Beat names no node. */
export class BeatFrames {
  readonly #frames: Buffer[] = [];
  readonly #executionsDigest: bigint;

  /** @param executionsDigest the executions digest of all agents; 0 for agents that run nothing. */
  constructor(executionsDigest = 0n) {
    this.#executionsDigest = executionsDigest;
  }

  /** The complete HTTP/2 frame of the Beat with this sequence number. */
  at(sequence: number): Buffer {
    for (let next = this.#frames.length + 1; next <= sequence; next++) {
      this.#frames.push(
        messageFrame(STREAM_ID, toBinary(HeartbeatRequestSchema, beatRequest(next, this.#executionsDigest))),
      );
    }
    const found = this.#frames[sequence - 1];
    if (found === undefined) throw new RangeError(`a sequence starts at 1, not at ${sequence}`);
    return found;
  }
}
