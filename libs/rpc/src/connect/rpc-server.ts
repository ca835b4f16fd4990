import type { DescMessage, DescService } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { Health as GrpcHealth } from "@rollcall/api/grpc/health/v1/health_pb";
import { describeError, isCallersFault, refuse } from "@rollcall/errors";
import { systemClock } from "@rollcall/process";
import { refuseCall } from "../answers/answer-error.ts";
import { notFound } from "../answers/answer-unknown-path.ts";
import { routeHealth } from "../builtins/health-service.ts";
import { type ReflectionService, reflectionServices, routeReflection } from "../builtins/reflection-service.ts";
import { ServingStatus } from "../builtins/serving-status.ts";
import type { HttpHandler } from "../calls/http-handler.ts";
import { createIdentify } from "../calls/identify-caller.ts";
import { codeName, type MethodPolicy, methodName, type PolicyTable, policyProblems } from "../calls/policy.ts";
import { createRequestValidator, validateRequests } from "../calls/request-validator.ts";
import { PolyglotListener, type PolyglotOptions } from "../connections/polyglot-listener.ts";
import { authorize, endWithCaller } from "../interceptors/authorize.ts";
import { awaitRevision } from "../interceptors/await-revision.ts";
import { boundDuration, type ServerEnding } from "../interceptors/bound-duration.ts";
import { CallGroup } from "../interceptors/call-group.ts";
import { countCallers, takeTurns } from "../interceptors/count-callers.ts";
import { limitPages } from "../interceptors/limit-pages.ts";
import { logCalls } from "../interceptors/log-calls.ts";
import { mapErrors } from "../interceptors/map-errors.ts";
import { measureCalls, rpcDurations } from "../interceptors/measure-calls.ts";
import { recordRefusals } from "../interceptors/record-refusals.ts";
import { refuseAnonymous } from "../interceptors/refuse-anonymous.ts";
import { requestId } from "../interceptors/request-id.ts";
import { traceCalls } from "../interceptors/trace-calls.ts";
import { AnonymousLog, type AnonymousLogLine } from "../limits/anonymous-log.ts";
import { limitFailures } from "../limits/failed-attempts.ts";
import { HostGuard, type HostGuardOptions } from "../limits/host-guard.ts";
import { StreamCallers } from "../limits/stream-callers.ts";
import { UnreadAnswers } from "../limits/unread-answers.ts";
import { serveOpenApi } from "../openapi/serve-openapi.ts";
import type { GuardedServer, RpcServerOptions } from "../server-options.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { serveAuthority } from "./serve-authority.ts";
import { serveHttpPages } from "./serve-http-pages.ts";

const DEFAULT_MAX_CONNECTIONS = 8_192;

/** How long clients are asked to wait, in milliseconds, before they reconnect to this replica or another. */
const RECONNECT_AFTER_MS = 250;

/**
 * Serve RPCs on one port, in clear text or over TLS: gRPC, gRPC-Web and Connect over HTTP/1.1 and HTTP/2, with
 * reflection and grpc.health.v1. Rejects if a method has no policy row, or if the address cannot be bound.
 */
export async function createRpcServer(options: RpcServerOptions): Promise<GuardedServer> {
  const reflection = reflectionServices([...options.services, GrpcHealth]);
  const builtin = [GrpcHealth, ...reflection.map(({ service }) => service)];
  const policies = { ...options.policies, ...builtinPolicies(builtin) };
  const problems = policyProblems([...options.services, ...builtin], policies);
  if (problems.length > 0) throw new Error(`the policy table is invalid: ${problems.join("; ")}`);

  const serving = options.serving ?? new ServingStatus();
  const ending = { streams: new CallGroup(), unary: new CallGroup() };
  const anonymousClients = options.anonymousClients ?? new AnonymousLog({ log: options.log });
  const rpc = rpcHandler({ ...options, anonymousClients }, { serving, policies, reflection, ending });
  const handler = guarded({ ...options, anonymousClients }, rpc);
  const listener = await PolyglotListener.listen({
    host: options.host,
    port: options.port,
    exclusive: options.exclusive ?? false,
    handler,
    firstByteMs: options.firstByteMs ?? 10_000,
    maxConnections: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    name: options.name ?? "api",
    log: options.log,
    metrics: options.metrics,
    clock: options.clock ?? systemClock,
    ...options.connectionTimes,
    anonymousClients,
    ...tlsOf(options),
  });
  for (const { typeName } of options.services) serving.set(typeName, "SERVING");
  return {
    host: options.host,
    port: listener.port,
    spare: (most) => listener.spare(most),
    close: () => close(options, listener, serving, ending),
  };
}

function inputsOf(services: readonly DescService[]): readonly DescMessage[] {
  return services.flatMap(({ methods }) => methods.map(({ input }) => input));
}

/**
 * Refuse requests for another host name, and requests that the origin check refuses, before anything else of this
 * server sees them.
 */
function guarded(options: HostGuardOptions & Pick<RpcServerOptions, "door">, handler: HttpHandler): HttpHandler {
  const guard = new HostGuard(options);
  return (request, response) => {
    const refusal = guard.refusalOf(request) ?? options.door?.(request) ?? null;
    if (refusal === null) handler(request, response);
    else refuseCall(request, response, refusal);
  };
}

function tlsOf({ tls, asksClients }: RpcServerOptions): Pick<PolyglotOptions, "tls"> {
  if (tls === undefined) return {};
  const asking = asksClients === undefined ? {} : { asksClients };
  return { tls: { source: tls, ...asking } };
}

/** How often to check for unread responses, in milliseconds, unless their time limits are shorter. */
const SCAN_EVERY_MS = 5_000;

/** How long the responses of aborted calls can take to be written, in milliseconds. */
const LAST_WORDS_MS = 250;

/**
 * Shut down in this order: notify load balancers, stop accepting connections and send GOAWAY, end streams with a
 * reason, give unary calls the grace period to finish, and abort and cut the remaining calls.
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
  // Ignore rejections of both sleeps, which end early when the last connection has closed.
  await clock.sleep(closeGraceMs, done.signal).catch(() => {});
  if (!done.signal.aborted) {
    options.log.warn({ connections: listener.connections }, "calls in progress were cut");
    ending.unary.abort(shuttingDown());
    await clock.sleep(LAST_WORDS_MS, done.signal).catch(() => {});
  }
  listener.destroy();
  await ended;
}

function shuttingDown() {
  return refuse("SERVER_SHUTTING_DOWN", "the server is shutting down; connect again, here or to another replica", {
    retryAfterMs: RECONNECT_AFTER_MS,
  });
}

/** What the handler of a server needs in addition to the server's options. */
interface Handling {
  readonly serving: ServingStatus;
  readonly policies: PolicyTable;
  readonly reflection: readonly ReflectionService[];
  readonly ending: ServerEnding;
}

function rpcHandler(
  options: RpcServerOptions & { readonly anonymousClients: AnonymousLog },
  { serving, policies, reflection, ending }: Handling,
): HttpHandler {
  const { clock = systemClock, log, metrics, anonymousClients } = options;
  const observe = rpcDurations(metrics);
  const { failures, calls, clientAddress, tls } = options;
  const interceptors: Interceptor[] = [
    requestId,
    // Trace calls before logCalls logs them, because its lines contain the trace id.
    ...(options.tracer ? [traceCalls(options.tracer)] : []),
    logCalls({ log, anonymousClients, clock }),
    measureCalls(metrics, clock),
    mapErrors,
    recordRefusals(policies, metrics, options.recordRefusal ?? (() => {})),
    ...(failures === undefined ? [] : [limitFailures(policies, failures)]),
    authorize(policies),
    countCallers,
    endWithCaller(policies, new StreamCallers({ authenticate: options.authenticate, clock })),
    boundDuration(policies, ending),
    // Wait for a revision before takeTurns, so that a call that waits does not take a turn.
    ...(options.logReader === undefined ? [] : [awaitRevision(policies, options.logReader, options.readWithinMs)]),
    takeTurns(policies),
    validateRequests(createRequestValidator(inputsOf(options.services))),
    limitPages({ clock, ...options.pageTurns }),
  ];
  const otherwise = serveOpenApi(options.services, policies, log, options.fallback ?? notFound);
  const pages = serveHttpPages(options.pages ?? [], { ...options, clock, observe }, otherwise);
  return createRpcHandler({
    routes: (router) => {
      options.routes(router);
      routeHealth(router, serving);
      routeReflection(router, reflection);
    },
    interceptors,
    log,
    refuseUnread: refuseAnonymous(policies, options),
    identify: createIdentify(options),
    policies,
    onEarlyError: (method, error, peer) => {
      observe(method, codeName(error.code), 0);
      anonymousClients.write(earlyLine(method, error, peer));
    },
    // Do not count these calls in metrics: callers choose the paths, so labels would grow without bound.
    onUnknownMethod: (path, peer) => anonymousClients.write(unknownLine(path, peer)),
    answers: new UnreadAnswers({ clock, log: anonymousClients, metrics, ...answerTimes(options) }),
    calls,
    clientAddress,
    passOn: options.passOn,
    fallback: tls === undefined ? pages : serveAuthority(tls, pages),
  });
}

function answerTimes({ unreadAnswerMs, requestMs }: RpcServerOptions) {
  // Check more often with the short limits that tests use.
  const times = unreadAnswerMs === undefined ? {} : { unreadMs: unreadAnswerMs };
  const shortestMs = Math.min(unreadAnswerMs ?? SCAN_EVERY_MS, requestMs ?? SCAN_EVERY_MS);
  return { ...times, ...(requestMs === undefined ? {} : { requestMs }), everyMs: shortestMs };
}

/** The log line of a call that failed before its caller was identified. */
function earlyLine(method: string, error: ConnectError, peer: string): AnonymousLogLine {
  const { code, reason, message } = describeError(error);
  const fields = { method, code: codeName(code), reason, message };
  return {
    level: "info",
    peer,
    what: reason ?? codeName(code),
    fields,
    message: "call finished",
    isFault: isCallersFault({ code, reason }),
  };
}

const SHOWN_PATH_LENGTH = 200;

function unknownLine(path: string, peer: string): AnonymousLogLine {
  const reason = "UNKNOWN_METHOD";
  const fields = { path: path.slice(0, SHOWN_PATH_LENGTH), code: "unimplemented", reason };
  return {
    level: "info",
    peer,
    what: reason,
    fields,
    message: "call finished",
    isFault: true,
  };
}

/** The policies of the built-in services, which anyone can call: load balancers and tools have no token. */
function builtinPolicies(services: readonly DescService[]): PolicyTable {
  const row = (isUnary: boolean): MethodPolicy => ({
    caller: "anyone",
    deadlineMs: isUnary ? 5_000 : 0,
    idempotent: true,
  });
  const methods = services.flatMap((service) => service.methods);
  return Object.fromEntries(methods.map((method) => [methodName(method), row(method.methodKind === "unary")]));
}
