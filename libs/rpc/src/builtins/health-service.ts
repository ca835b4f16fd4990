import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import {
  Health as GrpcHealth,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from "@rollcall/api/grpc/health/v1/health_pb";
import { Outbox } from "../calls/outbox.ts";
import type { ServingStatus } from "./serving-status.ts";

/** How many changes of status a watcher may be behind. */
const WATCH_LIMIT = 64;

/**
 * grpc.health.v1 Check: the status of a service; NOT_FOUND, as that protocol has it, for a service that is not here.
 */
export function checkServing(serving: ServingStatus, service: string): HealthCheckResponse_ServingStatus {
  const status = serving.get(service);
  if (status === null) throw new ConnectError(`there is no service ${service} here`, Code.NotFound);
  return HealthCheckResponse_ServingStatus[status];
}

/** grpc.health.v1 Watch: tell the status now and after each change. Returns the function that ends it. */
export function watchServing(
  serving: ServingStatus,
  service: string,
  tell: (status: HealthCheckResponse_ServingStatus) => void,
): () => void {
  let told: HealthCheckResponse_ServingStatus | undefined;
  const update = () => {
    const status = HealthCheckResponse_ServingStatus[serving.get(service) ?? "SERVICE_UNKNOWN"];
    if (status === told) return;
    told = status;
    tell(status);
  };
  update();
  return serving.onChange(update);
}

/** Serve grpc.health.v1 on a Connect router. */
export function routeHealth(router: ConnectRouter, serving: ServingStatus): void {
  router.service(GrpcHealth, {
    check: ({ service }) => create(HealthCheckResponseSchema, { status: checkServing(serving, service) }),
    async *watch({ service }, { signal }) {
      const outbox = new Outbox<HealthCheckResponse_ServingStatus>(WATCH_LIMIT);
      const stop = watchServing(serving, service, (status) => outbox.push(status));
      signal.addEventListener("abort", () => outbox.close(), { once: true });
      try {
        for await (const status of outbox) yield create(HealthCheckResponseSchema, { status });
      } finally {
        stop();
      }
      signal.throwIfAborted();
    },
  });
}
