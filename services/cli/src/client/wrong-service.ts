import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus } from "@rollcall/api/grpc/health/v1/health_pb";
import { displayAddress, type ServiceName } from "./addresses.ts";
import type { Callee } from "./describe-failure.ts";

/** A service of the API by which each service of the control plane is known. */
const KNOWN_BY = {
  registry: "rollcall.registry.v1.RegistryService",
  health: "rollcall.health.v1.HealthQueryService",
  admin: "rollcall.admin.v1.AdminService",
  scheduler: "rollcall.scheduler.v1.JobService",
} as const satisfies Record<ServiceName, string>;

/**
 * Say that an address leads to another service of the control plane, which it does where services run apart and one
 * address is named for all. Null where it does not; then the server's own words have to do.
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
        // It answers NOT_FOUND for what it does not serve; a server that does not answer at all serves nothing.
        () => [],
      ),
    ),
  );
  const found = served.flat();
  if (found.length === 0 || found.includes(service)) return null;
  return (
    `${displayAddress(baseUrl)} is the ${found.join(" and ")} service, not ${service}\nhint: name ${service} ` +
    `with --${service} or ROLLCALL_${service.toUpperCase()}`
  );
}
