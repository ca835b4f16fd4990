import { createHash } from "node:crypto";
import type { ExecutionObservation } from "@rollcall/api/rollcall/work/v1/work_pb";

/**
 * The digest of what a node has of executions: the first 8 bytes of the SHA-256 of each id and change, by id. 0 for a
 * node that has none.
 */
export function executionsDigest(observations: readonly ExecutionObservation[]): bigint {
  if (observations.length === 0) return 0n;
  const lines = observations.map(({ id, change }) => `${id} ${change}\n`).sort();
  const hash = createHash("sha256").update(lines.join("")).digest();
  return hash.readBigUInt64BE(0);
}
