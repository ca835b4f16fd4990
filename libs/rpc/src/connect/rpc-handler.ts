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
import type { KnownCaller } from "@rollcall/identity";
import type { Logger } from "@rollcall/process";
import { endingKey, identityKey, onKnownKey, peerKey, placeKey, seenKey } from "../calls/call-context.ts";
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
import type { BodyCheck } from "../calls/message-parts.ts";
import { type MethodCaller, methodName, type PolicyTable } from "../calls/policy.ts";
import { connectionOf, trustConnection } from "../connections/connection.ts";
import { type DirectSpec, isDirect, serveDirect } from "../grpc/direct-grpc.ts";
import { countFor } from "../interceptors/count-callers.ts";
import { inPieces } from "../limits/answer-pieces.ts";
import type { CallAdmission } from "../limits/call-admission.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import type { UnreadAnswers } from "../limits/unread-answers.ts";
import { finishRequest, refuseCall } from "./answer-error.ts";
import { answerUnknownPath } from "./answer-unknown-path.ts";
import { bodyShapeOf } from "./checked-body.ts";
import { completeErrors } from "./complete-errors.ts";
import { requestBody } from "./request-body.ts";
import { COMPRESSIONS, emptiedUrl, unpackedUrl } from "./request-compression.ts";
import { MESSAGE_LIMIT_BYTES, OPEN_MESSAGE_LIMIT_BYTES } from "./server-options.ts";

export interface RpcHandlerOptions {
  routes(router: ConnectRouter): void;
  readonly interceptors: Interceptor[];
  readonly policies: PolicyTable;
  readonly log: Logger;
  /** The error of a call that is refused before any of it is read; null for one that may go on. */
  refuseUnread(method: DescMethod, authorization: string | null): ConnectError | null;
  /** Finds who calls a method that needs a role, before any of the request is decoded. */
  readonly identify: Identify;
  /** Called for calls that failed before any interceptor saw them. */
  onEarlyError(method: string, error: ConnectError, peer: string): void;
  /** Called for calls of unknown methods. */
  onUnknownMethod(path: string, peer: string): void;
  /** Counts calls under way; they are not counted when absent. */
  readonly calls?: CallAdmission | undefined;
  /** Gives up what is not read. */
  readonly answers: UnreadAnswers;
  /** See RpcServerOptions. */
  readonly clientAddress?: ClientAddress | undefined;
  readonly passOn?: PassOn | undefined;
  readonly fallback?: HttpHandler | undefined;
}

/** A method as a call of it is served. */
interface Served {
  readonly handler: UniversalHandler;
  /** Absent for methods that take several requests. */
  readonly spec: DirectSpec | undefined;
  readonly method: string;
  readonly needs: MethodCaller;
  readonly deadlineMs: number;
  readonly isStream: boolean;
}

/** What does not depend on which method it is: a page, or an unknown method. */
const NO_METHOD = { method: "none", needs: "anyone", deadlineMs: 0, isStream: false } as const;

/**
 * Make the HTTP handler that serves the routes over gRPC, gRPC-Web and Connect. connectNodeAdapter() is not used
 * because it lets a request with a malformed authority end the process, and writes to the console.
 */
export function createRpcHandler(options: RpcHandlerOptions): HttpHandler {
  const methods = servedMethods(options);
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const served = methods.get(path);
    const values = admit(served ?? NO_METHOD, request, response, options);
    if (values === null) return;
    if (served === undefined) {
      const known = (caller: KnownCaller): void => countFor(caller, values);
      serveElse({ request, response, path, peer: values.get(peerKey), known }, options);
      return;
    }
    const { spec } = served;
    const refusal = options.refuseUnread(served.handler.method, request.headers.authorization ?? null);
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
      // Nearly always a caller that went away while its answer was written; the call itself has its own line.
      options.log.debug({ method: served.method, err: error }, "answer not written");
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
 * Give a call its place among those under way and look after its answer, by its headers alone. Null when there is no
 * place: then it has its refusal, and none of it was decoded.
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
    // Not when its handler has returned: an answer that was not read yet holds its place.
    response.once("close", () => place.leave());
    return values.set(placeKey, place);
  } catch (error) {
    const refusal = mapError(error);
    onEarlyError(method, refusal, peer);
    refuseCall(request, response, refusal);
    return null;
  }
}

/** Nothing that is thrown in a request listener may end the process. */
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
    // A misspelled field in a hand-written request is an error, not something to be silently dropped.
    jsonOptions: { ignoreUnknownFields: false },
  };
}

/** A router that also keeps the implementations of methods that take one request. */
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

/** The trailers of an answer are complete only once its body has been read, which is when they are asked for. */
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
 * Unpack the message of a GET request, or empty it without a check: then its caller is unknown. Resolves to its
 * refusal; null for none.
 */
async function unpackQuery(universal: { url: string }, check: BodyCheck | null): Promise<ConnectError | null> {
  try {
    universal.url = check === null ? emptiedUrl(universal.url) : await unpackedUrl(universal.url, check);
    return null;
  } catch (error) {
    return mapError(error);
  }
}

/** Null when the request has no authority, or one that makes no URL. */
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
    // They describe what was sent.
    if (shape.framing === "whole" && shape.unpack !== null) header.delete("content-encoding");
    if (shape.framing === "whole" && (shape.unpack !== null || identity !== null)) header.delete("content-length");
    const body = requestBody(request, {
      ...{ schema: handler.method.input, shape, mostBytes: mostBytesOf(needs), identity },
      isStream: isClientStream(handler),
    });
    return { ...universal, signal, body };
  } catch {
    return null;
  }
}

/**
 * End a call when its signal aborts. Calls whose callers went away share the event loop's budget: a hundred of them may
 * end at once with their connections, and each has its work to end and its line to write.
 */
function spreadAbort(ending: AbortController, signal: AbortSignal, request: HttpRequest, response: HttpResponse): void {
  const source = connectionOf(request)?.address ?? "";
  const onAbort = () => {
    const abort = () => ending.abort(signal.reason);
    // Listeners for the end of a call are called, however it ended.
    if (response.writableFinished) abort();
    else loopBudget.run(source, abort);
  };
  signal.addEventListener("abort", onAbort, { once: true });
}

/** The largest message that is decoded for a method. */
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
