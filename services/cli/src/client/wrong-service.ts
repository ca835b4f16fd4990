import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus } from "@rollcall/api/grpc/health/v1/health_pb";
import { displayAddress, type ServiceName } from "./addresses.ts";
import type { Callee } from "./describe-failure.ts";

/** For each service of the control plane, one API service that no other service serves. */
const KNOWN_BY = {
  registry: "rollcall.registry.v1.RegistryService",
  health: "rollcall.health.v1.HealthQueryService",
  admin: "rollcall.admin.v1.AdminService",
  scheduler: "rollcall.scheduler.v1.JobService",
} as const satisfies Record<ServiceName, string>;

/**
 * Explain that an address leads to another service of the control plane. This happens when services are deployed
 * separately and the user gives one address for all. Null when the address is right; in that case, the server's
 * own message is shown.
 */
export async function describeWrongService(
  { service, baseUrl }: Callee,
  clientOf: <S extends DescService>(service: S) => Client<S>,
): Promise<string | null> {
  const probe = clientOf(Health);
  const names = Object.keys(KNOWN_BY).filter((name): name is ServiceName => name in KNOWN_BY);
  const served = await Promise.all(
    names.map((name) =>
      probe.check({ service: KNOWN_BY[name] }).then(
        ({ status }) => (status === HealthCheckResponse_ServingStatus.SERVING ? [name] : []),
        // A server returns NOT_FOUND for services that it does not serve. A server that does not respond counts as
        // serving none.
        () => [],
      ),
    ),
  );
  const found = served.flat();
  if (found.length === 0 || found.includes(service)) return null;
  return (
    `${displayAddress(baseUrl)} is the ${found.join(" and ")} service, not ${service}\nhint: set the address of ` +
    `${service} with --${service} or ROLLCALL_${service.toUpperCase()}`
  );
}
