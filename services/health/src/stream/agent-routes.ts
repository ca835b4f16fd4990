import { fromBinary } from "@bufbuild/protobuf";
import {
  HealthService,
  type HeartbeatRequest,
  HeartbeatRequestSchema,
} from "@rollcall/api/rollcall/health/v1/health_pb";
import { type GrpcRoute, grpcRoute, hasTooManyParts } from "@rollcall/runtime";
import { AgentStream } from "./agent-stream.ts";
import { readBeatFrame } from "./beat-reader.ts";
import { MOST_BYTES, OVERSIZED } from "./oversized.ts";
import type { StreamHost } from "./stream-host.ts";

/** The agents' side, for a grpc-js server. A stream keeps itself alive by the call that it listens to. */
export function createAgentRoutes(host: StreamHost): readonly GrpcRoute[] {
  const handlers = {
    heartbeat: (call: ConstructorParameters<typeof AgentStream>[0]) => {
      new AgentStream(call, host);
    },
  };
  return [grpcRoute(HealthService, handlers, { heartbeat: decodeFrame })];
}

/** What an agent says about its machine may be large, and comes rarely; whatever is frequent is small. */
function decodeFrame(bytes: Buffer): HeartbeatRequest {
  const isSmall = bytes.length <= MOST_BYTES;
  const beat = isSmall ? readBeatFrame(bytes) : null;
  if (beat !== null) return beat;
  if (hasTooManyParts(bytes)) return OVERSIZED;
  const request = fromBinary(HeartbeatRequestSchema, bytes);
  return isSmall || request.frame.case === "nodeInfo" ? request : OVERSIZED;
}
