import type { HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { FrameKind } from "@rollcall/domain";

/** What a frame is to the session; null for one that is newer than this server. */
export function kindOf(frame: HeartbeatRequest["frame"]): FrameKind | null {
  switch (frame.case) {
    case "hello":
    case "beat":
    case "goodbye":
      return frame.case;
    case "nodeInfo":
      return "node-info";
    case undefined:
      return null;
  }
}
