import { create } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { ResourceUsage } from "@rollcall/api/rollcall/node/v1/usage_pb";
import { refuse } from "@rollcall/errors";

/** The largest frame: a NodeInfo, and a few bytes around it. */
export const MOST_BYTES = 65_536 + 16;

/** Stands for a larger frame, which is not decoded: that would cost more than sending it. */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);

/** The limits of the contract, whose rules are checked by hand for the most frequent frame. */
const MOST_PARTS = { gpus: 64, numaNodes: 32 } as const;
const WORDS = {
  gpus: { field: "gpus", what: "GPUs" },
  numaNodes: { field: "numa_nodes", what: "NUMA nodes" },
} as const;

/** The refusal of such a frame. */
export function tooLarge() {
  const message = "a frame may have 64 KiB";
  return refuse("MESSAGE_TOO_LARGE", message, { metadata: { limit: String(MOST_BYTES) } });
}

/** Throws when a sample has more GPUs or NUMA nodes than fit. */
export function checkParts(usage: ResourceUsage | undefined): void {
  if (usage === undefined) return;
  if (usage.gpus.length > MOST_PARTS.gpus) throw tooManyParts("gpus");
  if (usage.numaNodes.length > MOST_PARTS.numaNodes) throw tooManyParts("numaNodes");
}

function tooManyParts(kind: keyof typeof MOST_PARTS) {
  const { field, what } = WORDS[kind];
  const description = `at most ${MOST_PARTS[kind]} ${what} fit one sample`;
  return refuse("INVALID_REQUEST", `invalid request: usage.${field}: ${description}`, {
    violations: [{ field: `beat.usage.${field}`, description }],
  });
}
