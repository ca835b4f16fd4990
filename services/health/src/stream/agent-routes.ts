import type { Message } from "@bufbuild/protobuf";
import { HealthService, type HeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type GrpcRoute, grpcRoute } from "@rollcall/runtime";
import { AgentStream } from "./agent-stream.ts";
import { OVERSIZED } from "./oversized.ts";
import type { StreamHost } from "./stream-host.ts";

/** The agents' side, for a grpc-js server. A stream keeps itself alive by the call that it listens to. */
export function createAgentRoutes(host: StreamHost): readonly GrpcRoute[] {
  const handlers = {
    heartbeat: (call: ConstructorParameters<typeof AgentStream>[0]) => {
      new AgentStream(call, host);
    },
  };
  return [grpcRoute(HealthService, handlers, takeLarge)];
}

/** What an agent says about its machine may be large, and comes rarely; whatever is frequent is small. */
function takeLarge(request: Message): Message {
  return (request as HeartbeatRequest).frame.case === "nodeInfo" ? request : OVERSIZED;
}
