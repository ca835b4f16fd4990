import { fromBinary } from "@bufbuild/protobuf";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { type GrpcRoute, grpcRoute, hasTooManyParts } from "@rollcall/rpc";
import type { LogCall, LogProxy } from "../work/log-proxy.ts";
import { AgentStream, type HeartbeatCall, type StreamHost } from "./agent-stream.ts";
import { readBeatFrame } from "./beat-reader.ts";
import { MOST_BYTES, OVERFULL, OVERSIZED } from "./oversized.ts";

/** The agents' methods. */
export function createAgentRoutes(host: StreamHost, logs: LogProxy): readonly GrpcRoute[] {
  const handlers = {
    heartbeat: { open: (call: HeartbeatCall) => new AgentStream(call, host) },
    serveLogs: { open: (call: LogCall) => logs.serve(call) },
  };
  return [grpcRoute(HealthService, handlers, { heartbeat: decodeFrame })];
}

function decodeFrame(bytes: Buffer): HeartbeatRequest {
  if (bytes.length > MOST_BYTES) return OVERSIZED;
  return (
    readBeatFrame(bytes) ??
    (hasTooManyParts(HeartbeatRequestSchema, bytes) ? OVERFULL : fromBinary(HeartbeatRequestSchema, bytes))
  );
}
