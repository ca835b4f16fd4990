import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Health as GrpcHealth } from "../../libs/api/src/gen/grpc/health/v1/health_pb.ts";
import { createMetrics, silentLogger, systemClock } from "../../libs/process/src/index.ts";
import { createRpcServer, type PolicyTable } from "../../libs/rpc/src/index.ts";
import { createRefusalRecorder, type Store } from "../../libs/store/src/index.ts";
import type { TestDatabase } from "../../libs/testkit/src/index.ts";
import type { TestIssuer } from "../../libs/testkit/src/test-issuer.ts";
import { loadControlPlaneConfig } from "../../services/rollcall/src/config/control-plane-config.ts";
import { createServices } from "../../services/rollcall/src/control-plane/create-services.ts";
import { openAuthentication } from "../../services/rollcall/src/control-plane/open-authentication.ts";
import { openGuards } from "../../services/rollcall/src/control-plane/open-guards.ts";
import { planUp } from "../../services/rollcall/src/control-plane/process-plan.ts";

/** A method, the URL that serves it, and its row of the policy table. */
export interface ServedMethod {
  readonly name: string;
  readonly method: DescMethod;
  readonly caller: PolicyTable[string]["caller"];
  readonly baseUrl: string;
}

/** Everything that `up` serves over HTTP, on separate ports. */
export interface AccessRig {
  readonly store: Store;
  readonly methods: readonly ServedMethod[];
  readonly policies: PolicyTable;
  close(): Promise<void>;
}

/**
 * Serve what `up` serves, with its policy tables. There is no limit on failed attempts, because a test of all
 * callers fails on purpose. `limits` are flags; without them, concurrent calls are not limited.
 */
export async function startAccessRig(
  database: Pick<TestDatabase, "store">,
  issuer: Pick<TestIssuer, "url" | "audience"> | null,
  limits: Readonly<Record<string, string>> | null = null,
): Promise<AccessRig> {
  const { store } = database;
  const [clock, log, metrics] = [systemClock, silentLogger, createMetrics({ defaults: false })];
  const oidc = issuer === null ? {} : { "OIDC.Issuer": issuer.url, "OIDC.Audience": issuer.audience };
  const flags: Record<string, string> = { ...oidc, ...limits };
  const shell = { env: {}, cwd: "/" };
  const { values: config } = await loadControlPlaneConfig({ shell, file: undefined, flags });
  const guards = openGuards({ store, config, clock, log, metrics });
  const { failures, anonymousClients, clientAddress } = guards;
  const perActor = { perSecond: 1_000, burst: 1_000 };
  const refusals = createRefusalRecorder({ store, clock, log, metrics, perActor });
  const process = { store, config, instance: "access-test", clock, log, metrics };
  const authentication = await openAuthentication({ store, config, clock, log });
  const { authenticate } = authentication;
  const shared = { ...process, failures, anonymousClients, clientAddress, authenticate };
  const services = createServices(planUp(config), shared, null);
  await services.start();
  const common = { host: "127.0.0.1", port: 0, log, metrics, clock };
  const api = await createRpcServer({
    ...common,
    routes: services.routes,
    services: services.services,
    policies: services.policies,
    logReader: services.logReader,
    authenticate,
    recordRefusal: refusals.record,
    ...(limits === null ? {} : { calls: guards.calls }),
  });
  const inner = services.health?.internal;
  if (inner === undefined) throw new Error("up has no health");
  const internal = await createRpcServer({ ...common, ...inner, authenticate: async () => null });
  const served = (all: readonly DescService[], policies: PolicyTable, port: number) =>
    all.flatMap((service) => methodsOf(service, policies, `http://127.0.0.1:${port}`));
  return {
    store,
    policies: { ...services.policies, ...inner.policies },
    methods: [
      ...served(services.services, services.policies, api.port),
      ...served(inner.services, inner.policies, internal.port),
      // Omit reflection, although it is open to everyone as well, because its bidirectional streams need HTTP/2.
      ...served([GrpcHealth], {}, api.port),
    ],
    close: async () => {
      await api.close();
      await internal.close();
      await services.close();
      await refusals.close();
      await guards.close();
      await authentication.close();
    },
  };
}

/** Return the methods of a service. A method without a row belongs to the runtime, and is open to everyone. */
function methodsOf(service: DescService, policies: PolicyTable, baseUrl: string): ServedMethod[] {
  return service.methods.map((method) => {
    const name = `${service.typeName}/${method.name}`;
    return { name, method, caller: policies[name]?.caller ?? "anyone", baseUrl };
  });
}
