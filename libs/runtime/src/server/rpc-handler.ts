import type { IncomingMessage } from "node:http";
import type { Http2ServerRequest } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import {
  type ConnectRouter,
  type ConnectRouterOptions,
  type ContextValues,
  createConnectRouter,
  createContextValues,
  createMethodImplSpec,
  createServiceImplSpec,
} from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Logger } from "../logging.ts";
import { answerRpcError } from "./answer-error.ts";
import { answerUnknownPath } from "./answer-unknown-path.ts";
import { peerKey, seenKey } from "./call-values.ts";
import { completeErrors } from "./complete-errors.ts";
import { type DirectSpec, isDirect, serveDirect } from "./direct-grpc.ts";
import { finishRequest } from "./finish-request.ts";
import { methodName } from "./method-name.ts";
import { requestBody } from "./request-body.ts";
import { COMPRESSIONS } from "./request-compression.ts";
import { type HttpHandler, MESSAGE_LIMIT_BYTES } from "./server-options.ts";

export interface RpcHandlerOptions {
  routes(router: ConnectRouter): void;
  readonly interceptors: Interceptor[];
  readonly log: Logger;
  /** The error of a call that is refused before anything of it is read; null for one that may go on. */
  refuseAtDoor(method: DescMethod, authorization: string | null): ConnectError | null;
  /** Told of the calls that failed before any interceptor saw them. */
  onEarlyError(method: string, error: ConnectError, peer: string): void;
  readonly fallback?: HttpHandler;
}

type Request = Parameters<HttpHandler>[0];
type Response = Parameters<HttpHandler>[1];

/**
 * Make the HTTP handler that serves the routes over gRPC, gRPC-Web and Connect. connectNodeAdapter() is not used because
 * it lets a request with a malformed authority end the process, and writes to the console.
 */
export function createRpcHandler(options: RpcHandlerOptions): HttpHandler {
  const router = createConnectRouter(routerOptions(options.interceptors));
  const specs = new Map<DescMethod, DirectSpec>();
  options.routes(recordSpecs(router, specs));
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = handlers.get(path);
    if (handler === undefined) {
      serveElse(request, response, path, options);
      return;
    }
    const { method } = handler;
    const refusal = options.refuseAtDoor(method, request.headers.authorization ?? null);
    if (refusal !== null) {
      options.onEarlyError(methodName(method), refusal, peerOf(request));
      answerRpcError(request, response, refusal);
      return;
    }
    const spec = specs.get(method);
    const serving =
      spec !== undefined && isDirect(request, response)
        ? serveGrpc(spec, request, response, options)
        : serve(handler, request, response, options);
    serving.catch((error: unknown) => {
      // Nearly always a caller that went away while its answer was written; the call itself has its own line.
      options.log.debug({ method: methodName(method), err: error }, "answer not written");
      giveUp(response);
    });
  };
}

/** Nothing that is thrown in a request listener may end the process. */
function serveElse(
  request: Request,
  response: Response,
  path: string,
  { fallback, log }: RpcHandlerOptions,
): void {
  try {
    answerUnknownPath(request, response, path, fallback);
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
  spec: DirectSpec,
  request: Request,
  response: Response,
  { interceptors, onEarlyError }: RpcHandlerOptions,
): Promise<void> {
  if (!("stream" in request) || !("stream" in response)) throw new Error("gRPC needs HTTP/2");
  const peer = peerOf(request);
  const values = createContextValues().set(peerKey, peer);
  await serveDirect({
    spec,
    request,
    response,
    values,
    interceptors,
    onEarlyError: (error) => onEarlyError(methodName(spec.method), error, peer),
  });
}

async function serve(
  handler: UniversalHandler,
  request: Request,
  response: Response,
  options: RpcHandlerOptions,
): Promise<void> {
  const peer = peerOf(request);
  const values = createContextValues().set(peerKey, peer);
  const universal = universalRequest(request, response, values, isClientStream(handler));
  if (universal === null) {
    response.writeHead(400);
    response.end();
    return;
  }
  finishRequest(request, response);
  const answer = await handler(universal);
  const complete =
    handler.method.methodKind === "unary"
      ? await completeErrors(answer, (error) => {
          if (!values.get(seenKey)) options.onEarlyError(methodName(handler.method), error, peer);
        })
      : answer;
  await universalResponseToNodeResponse(complete, response);
}

/** Null when the request has no authority, or one that makes no URL. */
function universalRequest(
  request: Request,
  response: Response,
  values: ContextValues,
  isStream: boolean,
) {
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    return { ...universal, body: requestBody(request, isStream) };
  } catch {
    return null;
  }
}

function isClientStream({ method: { methodKind } }: UniversalHandler): boolean {
  return methodKind === "client_streaming" || methodKind === "bidi_streaming";
}

function peerOf({ socket }: IncomingMessage | Http2ServerRequest): string {
  const { remoteAddress = "", remotePort = 0 } = socket;
  return remoteAddress.includes(":")
    ? `[${remoteAddress}]:${remotePort}`
    : `${remoteAddress}:${remotePort}`;
}

function giveUp(response: Response): void {
  if (response.headersSent) {
    if ("stream" in response) response.stream.close();
    else response.destroy();
    return;
  }
  response.writeHead(500);
  response.end();
}
