import { create } from "@bufbuild/protobuf";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { refuse } from "@rollcall/runtime";

/** Of any frame but a NodeInfo, which may have as much as the port takes. */
export const MOST_BYTES = 65_536;

/** Stands for any frame but a NodeInfo that has more: what it said is not looked at. */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);

/** As many as the contract has; its rules are checked by hand for the one frame that is frequent. */
export const MOST_GPUS = 256;

/** The refusal of such a frame. */
export function tooLarge() {
  const message = "a frame may have 64 KiB, and what a node says about its machine 1 MiB";
  return refuse("MESSAGE_TOO_LARGE", message, { metadata: { limit: String(MOST_BYTES) } });
}

/** The refusal of a sample with more GPUs than that. */
export function tooManyGpus() {
  const description = `at most ${MOST_GPUS} GPUs fit one sample`;
  return refuse("INVALID_REQUEST", `invalid request: usage.gpus: ${description}`, {
    violations: [{ field: "beat.usage.gpus", description }],
  });
}
