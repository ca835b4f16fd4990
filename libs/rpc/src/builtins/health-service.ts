import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import {
  Health as GrpcHealth,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
  type HealthListResponse,
  HealthListResponseSchema,
} from "@rollcall/api/grpc/health/v1/health_pb";
import { Outbox } from "../calls/outbox.ts";
import type { ServingStatus } from "./serving-status.ts";

/** Maximum number of status changes that can wait for a watcher that does not read them. */
const WATCH_LIMIT = 64;

/** The status of a service, for grpc.health.v1 Check. The protocol requires NOT_FOUND for an unknown service. */
export function checkServing(serving: ServingStatus, service: string): HealthCheckResponse_ServingStatus {
  const status = serving.get(service);
  if (status === null) throw new ConnectError(`this server has no service ${service}`, Code.NotFound);
  return HealthCheckResponse_ServingStatus[status];
}

/** The statuses of all services, for grpc.health.v1 List. There are as many as this process has services, so few. */
export function listServing(serving: ServingStatus): HealthListResponse {
  const statuses = serving
    .entries()
    .map(([service, status]) => [service, { status: HealthCheckResponse_ServingStatus[status] }] as const);
  return create(HealthListResponseSchema, { statuses: Object.fromEntries(statuses) });
}

/**
 * Report the current status of a service, then every change, for grpc.health.v1 Watch. Returns a function that
 * stops the watch.
 */
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
    list: () => listServing(serving),
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
