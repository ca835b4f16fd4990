import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type GrpcRoute, grpcRoute } from "@rollcall/runtime";
import { AgentStream } from "./agent-stream.ts";
import type { StreamHost } from "./stream-host.ts";

/** The agents' side, for a grpc-js server. A stream keeps itself alive by the call that it listens to. */
export function createAgentRoutes(host: StreamHost): readonly GrpcRoute[] {
  return [
    grpcRoute(HealthService, {
      heartbeat: (call) => {
        new AgentStream(call, host);
      },
    }),
  ];
}
