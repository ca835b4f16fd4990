import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  GetReplicaStateResponseSchema,
  HealthInternalService,
} from "@rollcall/api/rollcall/health/v1/health_internal_pb";
import type { HealthServices } from "../../health-services.ts";

const METHOD = HealthInternalService.method.getReplicaState;

/** Return whether this replica can reach the record. */
export function getReplicaState(services: HealthServices): MethodImpl<typeof METHOD> {
  return () => {
    const { mayOpen, nodes } = services.replica;
    return create(GetReplicaStateResponseSchema, {
      holdsLease: mayOpen,
      sessions: nodes.sessions,
    });
  };
}
