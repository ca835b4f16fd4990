import type { DescMessage, DescService } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor } from "@connectrpc/connect";
import { Health as GrpcHealth } from "@rollcall/api/grpc/health/v1/health_pb";
import { describeError, isCallersFault, refuse } from "@rollcall/errors";
import { systemClock } from "@rollcall/process";
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
import { requestId } from "../interceptors/request-id.ts";
import { traceCalls } from "../interceptors/trace-calls.ts";
import { limitFailures } from "../limits/failed-attempts.ts";
import { HostGuard, type HostGuardOptions } from "../limits/host-guard.ts";
import { refuseStrangers } from "../limits/refuse-strangers.ts";
import { type StrangerLine, StrangerLog } from "../limits/stranger-log.ts";
import { StreamCallers } from "../limits/stream-callers.ts";
import { UnreadAnswers } from "../limits/unread-answers.ts";
import { serveOpenApi } from "../openapi/serve-openapi.ts";
import { refuseCall } from "./answer-error.ts";
import { notFound } from "./answer-unknown-path.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { serveAuthority } from "./serve-authority.ts";
import { serveHttpPages } from "./serve-http-pages.ts";
import type { GuardedServer, RpcServerOptions } from "./server-options.ts";

const DEFAULT_MAX_CONNECTIONS = 8_192;

/** What a client is told to wait before it connects again, there or elsewhere. */
const RECONNECT_AFTER_MS = 250;

/**
 * Serve RPCs on one port, in clear text or over TLS: gRPC, gRPC-Web and Connect over HTTP/1.1 and HTTP/2, with
 * reflection and grpc.health.v1. Rejects when a method has no policy row, or when the address cannot be taken.
 */
export async function createRpcServer(options: RpcServerOptions): Promise<GuardedServer> {
  const reflection = reflectionServices([...options.services, GrpcHealth]);
  const builtin = [GrpcHealth, ...reflection.map(({ service }) => service)];
  const policies = { ...options.policies, ...builtinPolicies(builtin) };
  const problems = policyProblems([...options.services, ...builtin], policies);
  if (problems.length > 0) throw new Error(`the policy table is not right: ${problems.join("; ")}`);

  const serving = options.serving ?? new ServingStatus();
  const ending = { streams: new CallGroup(), unary: new CallGroup() };
  const strangers = options.strangers ?? new StrangerLog({ log: options.log });
  const rpc = rpcHandler({ ...options, strangers }, { serving, policies, reflection, ending });
  const handler = guarded({ ...options, strangers }, rpc);
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
    strangers,
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

/** A request under another server's name reaches nothing of this one, nor one that the door refuses. */
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

/** How often answers are looked at, unless their times are shorter. */
const LOOK_EVERY_MS = 5_000;

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

/** What a server's handler needs besides its options. */
interface Handling {
  readonly serving: ServingStatus;
  readonly policies: PolicyTable;
  readonly reflection: readonly ReflectionService[];
  readonly ending: ServerEnding;
}

function rpcHandler(
  options: RpcServerOptions & { readonly strangers: StrangerLog },
  { serving, policies, reflection, ending }: Handling,
): HttpHandler {
  const { clock = systemClock, log, metrics, strangers } = options;
  const observe = rpcDurations(metrics);
  const { failures, calls, clientAddress, tls } = options;
  const interceptors: Interceptor[] = [
    requestId,
    // Before the log, whose lines name the trace.
    ...(options.tracer ? [traceCalls(options.tracer)] : []),
    logCalls({ log, strangers, clock }),
    measureCalls(metrics, clock),
    mapErrors,
    recordRefusals(policies, metrics, options.recordRefusal ?? (() => {})),
    ...(failures === undefined ? [] : [limitFailures(policies, failures)]),
    authorize(policies),
    countCallers,
    endWithCaller(policies, new StreamCallers({ authenticate: options.authenticate, clock })),
    boundDuration(policies, ending),
    // Before it takes a slot, which other calls can use while it waits.
    ...(options.logReader === undefined ? [] : [awaitRevision(policies, options.logReader, options.readWithinMs)]),
    takeTurns,
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
    refuseUnread: refuseStrangers(policies, options),
    identify: createIdentify(options),
    policies,
    onEarlyError: (method, error, peer) => {
      observe(method, codeName(error.code), 0);
      strangers.write(earlyLine(method, error, peer));
    },
    // Their paths are chosen by callers: metrics with them would grow without a bound.
    onUnknownMethod: (path, peer) => strangers.write(unknownLine(path, peer)),
    answers: new UnreadAnswers({ clock, log: strangers, metrics, ...answerTimes(options) }),
    calls,
    clientAddress,
    passOn: options.passOn,
    fallback: tls === undefined ? pages : serveAuthority(tls, pages),
  });
}

function answerTimes({ unreadAnswerMs, requestMs }: RpcServerOptions) {
  // Tests have short times, and do not want to wait for a look that is long.
  const times = unreadAnswerMs === undefined ? {} : { unreadMs: unreadAnswerMs };
  const shortestMs = Math.min(unreadAnswerMs ?? LOOK_EVERY_MS, requestMs ?? LOOK_EVERY_MS);
  return { ...times, ...(requestMs === undefined ? {} : { requestMs }), everyMs: shortestMs };
}

/** The line of a call that failed before it was known whose it is. */
function earlyLine(method: string, error: ConnectError, peer: string): StrangerLine {
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

function unknownLine(path: string, peer: string): StrangerLine {
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

/** What the runtime serves by itself is open to anyone: balancers and tools carry no token. */
function builtinPolicies(services: readonly DescService[]): PolicyTable {
  const row = (isUnary: boolean): MethodPolicy => ({
    caller: "anyone",
    deadlineMs: isUnary ? 5_000 : 0,
    idempotent: true,
  });
  const methods = services.flatMap((service) => service.methods);
  return Object.fromEntries(methods.map((method) => [methodName(method), row(method.methodKind === "unary")]));
}
