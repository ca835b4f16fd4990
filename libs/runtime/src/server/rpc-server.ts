import type { DescService } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { Health as GrpcHealth } from "@rollcall/api/grpc/health/v1/health_pb";
import { systemClock } from "../clock.ts";
import { describeError, refuse } from "../errors.ts";
import { type MethodPolicy, type PolicyTable, policyProblems } from "../policy.ts";
import { routeHealth } from "./health-service.ts";
import { authorize } from "./interceptors/authorize.ts";
import { boundDuration, type ServerEnding } from "./interceptors/bound-duration.ts";
import { CallGroup } from "./interceptors/call-group.ts";
import { codeName } from "./interceptors/code-name.ts";
import { endWithCaller } from "./interceptors/end-with-caller.ts";
import { limitFailures } from "./interceptors/limit-failures.ts";
import { limitStreams } from "./interceptors/limit-streams.ts";
import { logCalls } from "./interceptors/log-calls.ts";
import { mapErrors } from "./interceptors/map-errors.ts";
import { measureCalls, rpcDurations } from "./interceptors/measure-calls.ts";
import { recordRefusals } from "./interceptors/record-refusals.ts";
import { requestId } from "./interceptors/request-id.ts";
import { takeTurns } from "./interceptors/take-turns.ts";
import { validateRequests } from "./interceptors/validate-requests.ts";
import { methodName } from "./method-name.ts";
import { PolyglotListener, type PolyglotOptions } from "./polyglot-listener.ts";
import {
  type ReflectionService,
  reflectionServices,
  routeReflection,
} from "./reflection-service.ts";
import { createRequestValidator } from "./request-validator.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import type { HttpHandler, RpcServerOptions, RunningServer } from "./server-options.ts";
import { ServingStatus } from "./serving-status.ts";
import { StreamWatch } from "./stream-watch.ts";

/** What a client is told to wait before it connects again, there or elsewhere. */
const RECONNECT_AFTER_MS = 250;

/**
 * Serve RPCs on one port, in clear text or over TLS: gRPC, gRPC-Web and Connect over HTTP/1.1 and HTTP/2, with reflection and grpc.health.v1.
 * Rejects when a method has no policy row, or when the address cannot be taken.
 */
export async function createRpcServer(options: RpcServerOptions): Promise<RunningServer> {
  const reflection = reflectionServices([...options.services, GrpcHealth]);
  const builtin = [GrpcHealth, ...reflection.map(({ service }) => service)];
  const policies = { ...options.policies, ...builtinPolicies(builtin) };
  const problems = policyProblems([...options.services, ...builtin], policies);
  if (problems.length > 0) throw new Error(`the policy table is not right: ${problems.join("; ")}`);

  const serving = options.serving ?? new ServingStatus();
  const ending = { streams: new CallGroup(), unary: new CallGroup() };
  const handler = rpcHandler(options, serving, policies, reflection, ending);
  const listener = await PolyglotListener.listen({
    host: options.host,
    port: options.port,
    exclusive: options.exclusive ?? false,
    handler,
    firstByteMs: options.firstByteMs ?? 10_000,
    maxConnections: options.maxConnections ?? 8_192,
    ...tlsOf(options),
  });
  for (const { typeName } of options.services) serving.set(typeName, "SERVING");
  return {
    host: options.host,
    port: listener.port,
    close: () => close(options, listener, serving, ending),
  };
}

function tlsOf(options: RpcServerOptions): Pick<PolyglotOptions, "tls"> {
  const { tls, log, metrics, asksClients } = options;
  if (tls === undefined) return {};
  const asking = asksClients === undefined ? {} : { asksClients };
  return { tls: { source: tls, log, metrics, ...asking } };
}

/** How long the answers of calls that were cut may take to be written. */
const LAST_WORDS_MS = 250;

/**
 * In this order: balancers are told, no connection is accepted and GOAWAY is sent, streams end with their reason, unary
 * calls get the grace period to finish, and what is left is told and cut.
 */
async function close(
  options: RpcServerOptions,
  listener: PolyglotListener,
  serving: ServingStatus,
  ending: ServerEnding,
): Promise<void> {
  const { clock = systemClock, closeGraceMs = 5_000, services } = options;
  for (const { typeName } of services) serving.set(typeName, "NOT_SERVING");
  const done = new AbortController();
  const ended = listener.drain().then(() => done.abort());
  ending.streams.abort(shuttingDown());
  // Both sleeps end early, by rejecting, when the last connection has ended.
  await clock.sleep(closeGraceMs, done.signal).catch(() => {});
  if (!done.signal.aborted) {
    options.log.warn({ connections: listener.connections }, "calls under way were cut");
    ending.unary.abort(shuttingDown());
    await clock.sleep(LAST_WORDS_MS, done.signal).catch(() => {});
  }
  listener.destroy();
  await ended;
}

function shuttingDown() {
  return refuse("SERVER_SHUTTING_DOWN", "the server is ending, connect again, there or elsewhere", {
    retryAfterMs: RECONNECT_AFTER_MS,
  });
}

function rpcHandler(
  options: RpcServerOptions,
  serving: ServingStatus,
  policies: PolicyTable,
  reflection: readonly ReflectionService[],
  ending: ServerEnding,
): HttpHandler {
  const { clock = systemClock, log, metrics } = options;
  const observe = rpcDurations(metrics);
  const { failures } = options;
  const interceptors: Interceptor[] = [
    requestId,
    logCalls(log, clock),
    measureCalls(metrics, clock),
    mapErrors,
    recordRefusals(policies, metrics, options.recordRefusal ?? (() => {})),
    ...(failures === undefined ? [] : [limitFailures(policies, failures)]),
    authorize(policies, options.authenticate),
    limitStreams(policies, options.maxStreamsPerCaller ?? 2_000),
    endWithCaller(policies, new StreamWatch({ authenticate: options.authenticate, clock })),
    boundDuration(policies, ending),
    validateRequests(options.validator ?? createRequestValidator()),
    takeTurns({ clock, ...options.turns }),
  ];
  return createRpcHandler({
    routes: (router) => {
      options.routes(router);
      routeHealth(router, serving);
      routeReflection(router, reflection);
    },
    interceptors,
    log,
    onEarlyError: (method, error, peer) => {
      const { code, reason, message } = describeError(error);
      observe(method, codeName(code), 0);
      log.info({ method, peer, code: codeName(code), reason, message }, "call finished");
    },
    ...(options.fallback === undefined ? {} : { fallback: options.fallback }),
  });
}

/** What the runtime serves by itself is open to anyone: balancers and tools carry no token. */
function builtinPolicies(services: readonly DescService[]): PolicyTable {
  const row = (isUnary: boolean): MethodPolicy => ({
    caller: "anyone",
    deadlineMs: isUnary ? 5_000 : 0,
    idempotent: true,
  });
  const methods = services.flatMap((service) => service.methods);
  return Object.fromEntries(
    methods.map((method) => [methodName(method), row(method.methodKind === "unary")]),
  );
}
