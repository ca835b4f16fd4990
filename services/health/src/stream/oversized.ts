import { create } from "@bufbuild/protobuf";
import {
  type HeartbeatRequest,
  HeartbeatRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";

/** Stands for any frame but a NodeInfo that has more than 64 KiB: what it said is not looked at. */
export const OVERSIZED: HeartbeatRequest = create(HeartbeatRequestSchema);
