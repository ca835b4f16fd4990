import { createHash } from "node:crypto";
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { ExecutionReportSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type ExecutionObservation, ExecutionObservationSchema } from "@rollcall/api/rollcall/work/v1/work_pb";

/**
 * The maximum size of the observations in one frame, in bytes. A server accepts frames of 64 KiB; the rest is for
 * the other fields.
 */
const MOST_PART_BYTES = 49_152;
const MOST_PART_OBSERVATIONS = 1_000;

/** The size of the tag and length of each observation, in bytes. */
const OVERHEAD_BYTES = 4;

/** Split a report into frames that a server accepts. A report without observations is one frame. */
export function reportParts(
  report: { readonly number: number; readonly whole: boolean; readonly digest: bigint },
  observations: readonly ExecutionObservation[],
): readonly MessageInitShape<typeof ExecutionReportSchema>[] {
  const parts: ExecutionObservation[][] = [[]];
  let bytes = 0;
  for (const observation of observations) {
    const size = toBinary(ExecutionObservationSchema, observation).length + OVERHEAD_BYTES;
    const last = parts.at(-1) ?? [];
    if (last.length > 0 && (bytes + size > MOST_PART_BYTES || last.length >= MOST_PART_OBSERVATIONS)) {
      parts.push([observation]);
      bytes = size;
    } else {
      last.push(observation);
      bytes += size;
    }
  }
  const { number, whole, digest } = report;
  return parts.map((part, index) => ({
    number: BigInt(number),
    whole,
    more: index < parts.length - 1,
    digest,
    observations: part,
  }));
}

/**
 * The digest of a node's executions: the first 8 bytes of the SHA-256 of each id and change number, ordered by id. 0
 * if the node has none.
 */
export function executionsDigest(observations: readonly ExecutionObservation[]): bigint {
  if (observations.length === 0) return 0n;
  const lines = observations.map(({ id, change }) => `${id} ${change}\n`).sort();
  const hash = createHash("sha256").update(lines.join("")).digest();
  return hash.readBigUInt64BE(0);
}
