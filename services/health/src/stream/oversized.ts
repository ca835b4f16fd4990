import { create } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { refuse } from "@rollcall/errors";

/** The largest frame: a NodeInfo, and a few bytes around it. */
export const MOST_BYTES = 65_536 + 16;

/** Stands for a larger frame, which is not decoded: that would cost more than sending it. */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);

/** The limit of the contract, whose rules are checked by hand for the most frequent frame. */
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
