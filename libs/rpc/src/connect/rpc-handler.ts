import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type ContextValues,
  createConnectRouter,
  createContextValues,
  createMethodImplSpec,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
} from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { mapError } from "@rollcall/errors";
import type { IdentifiedCaller } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import { finishRequest, refuseCall } from "../answers/answer-error.ts";
import { answerUnknownPath } from "../answers/answer-unknown-path.ts";
import { callSlotKey, endingKey, identityKey, onKnownKey, peerKey, seenKey } from "../calls/call-context.ts";
import { addressOf, type ClientAddress, peerOf } from "../calls/client-address.ts";
import { needsRole } from "../calls/find-caller.ts";
import {
  type ForeignCall,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  type PassOn,
  writeHead,
} from "../calls/http-handler.ts";
import type { Identify } from "../calls/identify-caller.ts";
import { LargeTurn } from "../calls/large-turn.ts";
import type { BodyCheck } from "../calls/message-parts.ts";
import { type MethodCaller, methodName, type PolicyTable } from "../calls/policy.ts";
import { connectionOf, trustConnection } from "../connections/connection.ts";
import { type DirectSpec, isDirect, serveDirect } from "../grpc/direct-grpc.ts";
import { countFor } from "../interceptors/count-callers.ts";
import { inPieces } from "../limits/answer-pieces.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import type { UnreadAnswers } from "../limits/unread-answers.ts";
import { MESSAGE_LIMIT_BYTES, OPEN_MESSAGE_LIMIT_BYTES } from "../server-options.ts";
import { bodyShapeOf } from "./checked-body.ts";
import { completeErrors } from "./complete-errors.ts";
import { requestBody } from "./request-body.ts";
import { COMPRESSIONS, emptiedUrl, refuseEncoding, unpackedUrl } from "./request-compression.ts";

export interface RpcHandlerOptions {
  routes(router: ConnectRouter): void;
  readonly interceptors: Interceptor[];
  readonly policies: PolicyTable;
  readonly log: Logger;
  /**
   * Find out whether to refuse a call before any of it is read. Returns the error, or null if the call can continue.
   */
  refuseUnread(method: DescMethod, authorization: string | null): ConnectError | null;
  /** Identifies the caller of a method that requires a role, before any of the request is decoded. */
  readonly identify: Identify;
  /** Called for calls that failed before any interceptor saw them. */
  onEarlyError(method: string, error: ConnectError, peer: string): void;
  /** Called for calls of unknown methods. */
  onUnknownMethod(path: string, peer: string): void;
  /** Counts and limits calls in progress; absent for no limits. */
  readonly calls?: CallAdmission | undefined;
  /** Aborts responses that are not read. */
  readonly answers: UnreadAnswers;
  /** See RpcServerOptions. */
  readonly clientAddress?: ClientAddress | undefined;
  readonly passOn?: PassOn | undefined;
  readonly fallback?: HttpHandler | undefined;
}

/** A method and how it is served. */
interface Served {
  readonly handler: UniversalHandler;
  /** The implementation; absent for methods that take several requests. */
  readonly spec: DirectSpec | undefined;
  readonly method: string;
  readonly needs: MethodCaller;
  readonly deadlineMs: number;
  readonly isStream: boolean;
}

/** Used for requests that do not call a known method, such as requests for pages. */
const NO_METHOD = { method: "none", needs: "anyone", deadlineMs: 0, isStream: false } as const;

/**
 * Create the HTTP handler that serves the routes over gRPC, gRPC-Web and Connect. It does not use connectNodeAdapter(),
 * which ends the process on a request with a malformed authority, and writes to the console.
 */
export function createRpcHandler(options: RpcHandlerOptions): HttpHandler {
  const methods = servedMethods(options);
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const served = methods.get(path);
    const values = admit(served ?? NO_METHOD, request, response, options);
    if (values === null) return;
    if (served === undefined) {
      const known = (caller: IdentifiedCaller): void => countFor(caller, values);
      serveElse({ request, response, path, peer: values.get(peerKey), known }, options);
      return;
    }
    const { spec } = served;
    const refusal =
      options.refuseUnread(served.handler.method, request.headers.authorization ?? null) ?? refuseEncoding(request);
    if (refusal !== null) {
      options.onEarlyError(served.method, refusal, values.get(peerKey));
      refuseCall(request, response, refusal);
      return;
    }
    if (served.needs === "replica") values.get(onKnownKey)("replica");
    if (needsRole(served.needs)) {
      values.set(identityKey, options.identify(request.headers.authorization ?? null, values.get(peerKey)));
    }
    const serving =
      spec !== undefined && isDirect(request, response)
        ? serveGrpc({ ...served, spec }, request, response, values, options)
        : serve(served, request, response, values, options);
    serving.catch((error: unknown) => {
      // Log at debug level: nearly always, the caller disconnected while its response was written. The call itself has
      // its own log line.
      options.log.debug({ method: served.method, err: error }, "response not written");
      giveUp(response);
    });
  };
}

function servedMethods(options: RpcHandlerOptions): ReadonlyMap<string, Served> {
  const router = createConnectRouter(routerOptions(options.interceptors));
  const specs = new Map<DescMethod, DirectSpec>();
  options.routes(recordSpecs(router, specs));
  const served = router.handlers.map((handler): [string, Served] => {
    const method = methodName(handler.method);
    const { caller = "anyone", deadlineMs = 0 } = options.policies[method] ?? {};
    const isStream = handler.method.methodKind !== "unary";
    const spec = specs.get(handler.method);
    return [handler.requestPath, { handler, spec, method, needs: caller, deadlineMs, isStream }];
  });
  return new Map(served);
}

/**
 * Give a call a slot among the calls in progress, and watch its response. This reads only the call's headers. If no
 * slot is free, the call is refused before any of it is decoded, and this returns null.
 */
function admit(
  served: Omit<Served, "handler" | "spec">,
  request: HttpRequest,
  response: HttpResponse,
  { calls, answers, clientAddress, onEarlyError }: RpcHandlerOptions,
): ContextValues | null {
  const { method, needs, isStream, deadlineMs } = served;
  const peer = addressOf(peerOf(request.socket), request.headers, clientAddress);
  const values = createContextValues()
    .set(peerKey, peer)
    .set(onKnownKey, (by) => trustConnection(request, by));
  answers.join({ method, request, response, values, deadlineMs });
  try {
    const { authorization = null } = request.headers;
    const place = calls?.enter({ needs, isStream, peer, authorization });
    if (place === undefined) return values;
    // Release the slot when the response closes, rather than when the handler returns: a response that has not been
    // read keeps the slot.
    response.once("close", () => place.leave());
    return values.set(callSlotKey, place);
  } catch (error) {
    const refusal = mapError(error);
    onEarlyError(method, refusal, peer);
    refuseCall(request, response, refusal);
    return null;
  }
}

/**
 * Serve a request that does not call a method of this server. An exception in a request listener must not end the
 * process.
 */
function serveElse(call: ForeignCall, { fallback, passOn, log, onUnknownMethod }: RpcHandlerOptions): void {
  const { request, response, path, peer } = call;
  try {
    if (passOn?.(call)) return;
    const isCall = answerUnknownPath(request, response, path, fallback);
    if (isCall) onUnknownMethod(path, peer);
  } catch (error) {
    log.error({ path, err: error }, "page failed");
    giveUp(response);
  }
}

function routerOptions(interceptors: Interceptor[]): ConnectRouterOptions {
  return {
    interceptors,
    readMaxBytes: MESSAGE_LIMIT_BYTES,
    acceptCompression: COMPRESSIONS,
    // Refuse a misspelled field in a hand-written request instead of ignoring it.
    jsonOptions: { ignoreUnknownFields: false },
  };
}

/** Wrap a router so that it also records the implementations of methods that take one request. */
function recordSpecs(router: ConnectRouter, specs: Map<DescMethod, DirectSpec>): ConnectRouter {
  const record = (spec: MethodImplSpec) => {
    if (spec.kind === "unary" || spec.kind === "server_streaming") specs.set(spec.method, spec);
  };
  const recording: ConnectRouter = {
    handlers: router.handlers,
    service(service, impl, options) {
      router.service(service, impl, options);
      for (const spec of Object.values(createServiceImplSpec(service, impl).methods)) record(spec);
      return recording;
    },
    rpc(method, impl, options) {
      router.rpc(method, impl, options);
      record(createMethodImplSpec(method, impl));
      return recording;
    },
  };
  return recording;
}

async function serveGrpc(
  { spec, method, needs }: Served & { readonly spec: DirectSpec },
  request: HttpRequest,
  response: HttpResponse,
  values: ContextValues,
  { interceptors, onEarlyError }: RpcHandlerOptions,
): Promise<void> {
  if (!("stream" in request) || !("stream" in response)) throw new Error("gRPC needs HTTP/2");
  await serveDirect({
    spec,
    request,
    response,
    values,
    interceptors,
    mostBytes: mostBytesOf(needs),
    onEarlyError: (error) => onEarlyError(method, error, values.get(peerKey)),
  });
}

async function serve(
  { handler, method, needs, isStream }: Served,
  request: HttpRequest,
  response: HttpResponse,
  values: ContextValues,
  options: RpcHandlerOptions,
): Promise<void> {
  const universal = universalRequest(request, response, values, { handler, needs });
  if (universal === null) {
    writeHead(response, 400);
    response.end();
    return;
  }
  if (request.method === "GET") {
    const identity = await values.get(identityKey);
    const isUnknown = identity?.ok === false;
    const query = { schema: handler.method.input, source: connectionOf(request)?.address ?? "" };
    const refusal = await unpackQuery(universal, isUnknown ? null : { ...query, mostBytes: mostBytesOf(needs) });
    if (refusal !== null) {
      options.onEarlyError(method, refusal, values.get(peerKey));
      refuseCall(request, response, refusal);
      return;
    }
  }
  finishRequest(request, response);
  const answer = await handler(universal);
  const complete = isStream
    ? answer
    : await completeErrors(answer, (error) => {
        if (!values.get(seenKey)) options.onEarlyError(method, error, values.get(peerKey));
      });
  await universalResponseToNodeResponse(answerInPieces(complete), response);
}

/**
 * Send a response in pieces. Its trailers are complete only once its body has been read, so the getter returns them
 * only when they are needed.
 */
function answerInPieces(answer: UniversalServerResponse): UniversalServerResponse {
  const { status, header = new Headers(), body } = answer;
  if (body === undefined || body === null) return answer;
  return {
    status,
    header,
    body: inPieces(body),
    get trailer() {
      return answer.trailer ?? new Headers();
    },
  };
}

/**
 * Decompress the message of a GET request. If `check` is null because the caller is unknown, replace the message with
 * an empty one. Resolves to the error if the message is refused, otherwise to null.
 */
async function unpackQuery(universal: { url: string }, check: BodyCheck | null): Promise<ConnectError | null> {
  try {
    universal.url = check === null ? emptiedUrl(universal.url) : await unpackedUrl(universal.url, check);
    return null;
  } catch (error) {
    return mapError(error);
  }
}

/** Convert a request for Connect. Returns null if its authority is missing, or does not form a URL. */
function universalRequest(
  request: HttpRequest,
  response: HttpResponse,
  values: ContextValues,
  { handler, needs }: Pick<Served, "handler" | "needs">,
) {
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    const ending = new AbortController();
    values.set(endingKey, ending);
    spreadAbort(ending, universal.signal, request, response);
    const { signal } = ending;
    const { header } = universal;
    const shape = bodyShapeOf(header);
    const identity = values.get(identityKey);
    // Remove the headers that describe the compressed body, because it is decompressed here.
    if (shape.framing === "whole" && shape.unpack !== null) header.delete("content-encoding");
    if (shape.framing === "whole" && (shape.unpack !== null || identity !== null)) header.delete("content-length");
    const body = requestBody(request, {
      ...{ schema: handler.method.input, shape, mostBytes: mostBytesOf(needs), identity },
      isStream: isClientStream(handler),
      turn: new LargeTurn(values),
    });
    return { ...universal, signal, body };
  } catch {
    return null;
  }
}

/**
 * Abort a call when its signal aborts. When a connection breaks, a hundred calls can end at the same moment, and each
 * has work to stop and a log line to write. So calls whose callers disconnected share the event loop's budget.
 */
function spreadAbort(ending: AbortController, signal: AbortSignal, request: HttpRequest, response: HttpResponse): void {
  const source = connectionOf(request)?.address ?? "";
  const onAbort = () => {
    const abort = () => ending.abort(signal.reason);
    // The signal also aborts after a complete response. Then there is no work to spread, so abort immediately.
    if (response.writableFinished) abort();
    else loopBudget.run(source, abort);
  };
  signal.addEventListener("abort", onAbort, { once: true });
}

/** The maximum size of a method's messages, in bytes. */
function mostBytesOf(needs: MethodCaller): number {
  return needs === "anyone" || needs === "node" ? OPEN_MESSAGE_LIMIT_BYTES : MESSAGE_LIMIT_BYTES;
}

function isClientStream({ method: { methodKind } }: UniversalHandler): boolean {
  return methodKind === "client_streaming" || methodKind === "bidi_streaming";
}

function giveUp(response: HttpResponse): void {
  if (response.headersSent) {
    if ("stream" in response) response.stream.close();
    else response.destroy();
    return;
  }
  writeHead(response, 500);
  response.end();
}
