import {
  HealthService,
  type HeartbeatRequest,
  type ServeLogsRequest,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import type { FrameHandler } from "../src/grpc/frame-call.ts";
import { type GrpcRoute, grpcRoute } from "../src/grpc/grpc-handlers.ts";

/** A handler that does nothing with its calls. */
const idle: FrameHandler<unknown> = {
  open: () => ({ onFrame: () => {}, onHalfClose: () => {}, onGone: () => {} }),
};

/** Serve the agents' methods with these handlers. Calls of a method without one stay open. */
export function healthRoute({
  heartbeat = idle,
  serveLogs = idle,
}: {
  readonly heartbeat?: FrameHandler<HeartbeatRequest>;
  readonly serveLogs?: FrameHandler<ServeLogsRequest>;
}): GrpcRoute {
  return grpcRoute(HealthService, { heartbeat, serveLogs });
}

/** A handler that ends each call with its caller's half. */
export const ending: FrameHandler<unknown> = {
  open: (call) => ({ onFrame: () => {}, onHalfClose: () => call.end(), onGone: () => {} }),
};
