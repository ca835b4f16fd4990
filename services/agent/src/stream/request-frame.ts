import { create } from "@bufbuild/protobuf";
import { type HeartbeatRequest, HeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_pb";

/** What a frame of an agent may say. */
export type FrameInit = NonNullable<NonNullable<Parameters<typeof create<typeof HeartbeatRequestSchema>>[1]>["frame"]>;

/** Make one frame. */
export function requestFrame(frame: FrameInit): HeartbeatRequest {
  return create(HeartbeatRequestSchema, { frame });
}
