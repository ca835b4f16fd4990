import { create } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { refuse } from "@rollcall/errors";

/** Of any frame: as much as a NodeInfo may have, and the few bytes around it. */
export const MOST_BYTES = 65_536 + 16;

/**
 * Stands for a frame that has more: what it said is not looked at, since decoding it would cost more than the sender.
 */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);

/** As many as the contract has; its rules are checked by hand for the one frame that is frequent. */
export const MOST_GPUS = 64;

/** The refusal of such a frame. */
export function tooLarge() {
  const message = "a frame may have 64 KiB";
  return refuse("MESSAGE_TOO_LARGE", message, { metadata: { limit: String(MOST_BYTES) } });
}

/** The refusal of a sample with more GPUs than that. */
export function tooManyGpus() {
  const description = `at most ${MOST_GPUS} GPUs fit one sample`;
  return refuse("INVALID_REQUEST", `invalid request: usage.gpus: ${description}`, {
    violations: [{ field: "beat.usage.gpus", description }],
  });
}
