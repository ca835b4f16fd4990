import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  ForwardHeartbeatResponseSchema,
  HealthInternalService,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthServices } from "../../health-services.ts";

const METHOD = HealthInternalService.method.forwardHeartbeat;

/** Take a unary heartbeat that reached another replica. It is never forwarded twice. */
export function forwardHeartbeat(services: HealthServices): MethodImpl<typeof METHOD> {
  return ({ heartbeat }) => {
    if (heartbeat === undefined) throw new Error("the contract requires a heartbeat");
    const answer = services.unary.take(heartbeat);
    return create(ForwardHeartbeatResponseSchema, { answer });
  };
}
