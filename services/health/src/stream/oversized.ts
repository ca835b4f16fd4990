import { create } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { refuse } from "@rollcall/errors";
import { tooManyParts } from "@rollcall/rpc";

/** Maximum size of a frame: a NodeInfo and a few bytes of framing. */
export const MOST_BYTES = 65_536 + 16;

/**
 * Stands for a larger frame, which is not decoded, because decoding would cost this server more than
 * sending costs the peer.
 */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);

/** Stands for a frame with more values than any agent sends. Such a frame is not decoded. */
export const OVERFULL: HeartbeatRequest = create(HeartbeatRequestSchema);

/** Limits of the contract that are checked by hand, because Beats are the most frequent frames. */
const MOST_PARTS = { gpus: 64, numaNodes: 32 } as const;
const WORDS = {
  gpus: { field: "gpus", what: "GPUs" },
  numaNodes: { field: "numa_nodes", what: "NUMA nodes" },
} as const;

/** The error for a frame that was not decoded; null for any other frame. */
export function refusalOf(frame: HeartbeatRequest): Error | null {
  if (frame === OVERSIZED) return tooLarge();
  return frame === OVERFULL ? tooManyParts() : null;
}

function tooLarge(): Error {
  const message = "the frame is larger than 64 KiB";
  return refuse("MESSAGE_TOO_LARGE", message, { metadata: { limit: String(MOST_BYTES) } });
}

/** Throws when a sample has more GPUs or NUMA nodes than allowed. */
export function checkParts(usage: ResourceUsage | undefined): void {
  if (usage === undefined) return;
  if (usage.gpus.length > MOST_PARTS.gpus) throw tooManyOf("gpus");
  if (usage.numaNodes.length > MOST_PARTS.numaNodes) throw tooManyOf("numaNodes");
}

function tooManyOf(kind: keyof typeof MOST_PARTS) {
  const { field, what } = WORDS[kind];
  const description = `a sample can have at most ${MOST_PARTS[kind]} ${what}`;
  return refuse("INVALID_REQUEST", `invalid request: usage.${field}: ${description}`, {
    violations: [{ field: `beat.usage.${field}`, description }],
  });
}
