import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { create, fromBinary, type Message } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, HandlerContext, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { mapError, refuse } from "@rollcall/errors";
import type { HttpHandler } from "../calls/http-handler.ts";
import { checkParts } from "../calls/message-parts.ts";
import { finishRequest } from "../connect/answer-error.ts";
import { connectionOf } from "../connections/connection.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { DirectAnswer } from "./direct-answer.ts";
import { frameOf, readEnvelope } from "./grpc-envelope.ts";

/** A method that takes one request; its calls can be served without Connect's pipeline. */
export type DirectSpec = Extract<MethodImplSpec, { kind: "unary" | "server_streaming" }>;

/** A call of such a method. */
export interface DirectCall {
  readonly spec: DirectSpec;
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly values: ContextValues;
  readonly interceptors: readonly Interceptor[];
  /** Told of a unary call that failed before any interceptor saw it. */
  onEarlyError(error: ConnectError): void;
}

/** Whether a call is plain gRPC over HTTP/2: binary, and not compressed. */
export function isDirect(...[request, response]: Parameters<HttpHandler>): boolean {
  if (!("stream" in response) || request.method !== "POST") return false;
  const { "content-type": type, "grpc-encoding": encoding } = request.headers;
  const isPlain = encoding === undefined || encoding === "identity";
  return isPlain && (type === "application/grpc" || type === "application/grpc+proto");
}

/**
 * Serve a call of gRPC over HTTP/2 straight from the HTTP stream to the interceptors and the implementation. Connect's
 * own pipeline, made for every protocol at once, costs several times the time of a call and the memory of a held
 * stream; see docs/decisions/0021. Answers are not compressed, which gRPC leaves to the server.
 */
export async function serveDirect(call: DirectCall): Promise<void> {
  const { spec, request, response } = call;
  const answer = new DirectAnswer(response);
  const header = headersOf(request);
  const { timeoutMs, error: malformed } = parseTimeout(header.get(headerTimeout), NO_LIMIT);
  const context = openContext(call, header, timeoutMs);
  const timer = timeoutMs === undefined ? undefined : abortAfter(timeoutMs, context);
  // A connection may take a thousand streams along, and each has its work to end and its line to write.
  const source = connectionOf(request)?.address ?? "";
  const onClose = () => loopBudget.run(source, () => context.abort(callerLeft()));
  response.stream.once("close", onClose);
  try {
    if (malformed !== undefined) throw early(call, malformed);
    if (spec.kind === "unary") await serveUnary(call, spec, context, answer);
    else await serveStream(call, spec, context, answer);
    answer.end(context.responseHeader, context.responseTrailer);
  } catch (error) {
    answer.end(context.responseHeader, context.responseTrailer, mapError(error));
  } finally {
    response.stream.off("close", onClose);
    clearTimeout(timer);
    // Listeners for the end of the call are called, however it ended.
    context.abort(CALL_ENDED);
  }
}

function callerLeft(): ConnectError {
  return refuse("CANCELLED", "the caller went away");
}

// One for all calls: to make such an exception costs as much as a good part of a small call.
const CALL_ENDED = new DOMException("the call has ended", "AbortError");
const NO_LIMIT = Number.POSITIVE_INFINITY;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function abortAfter(timeoutMs: number, context: Context): NodeJS.Timeout {
  const message = `the call took longer than the ${timeoutMs} ms that its caller allowed`;
  const abort = () => context.abort(refuse("DEADLINE_EXCEEDED", message));
  return setTimeout(abort, Math.min(timeoutMs, LONGEST_TIMER_MS));
}

type Next = Parameters<Interceptor>[0];
type AnyRequest = Parameters<Next>[0];

async function serveUnary(
  call: DirectCall,
  { method, impl }: DirectSpec & { kind: "unary" },
  context: Context,
  answer: DirectAnswer,
): Promise<void> {
  const message = await readMessage(call).catch((error: unknown) => {
    throw early(call, error);
  });
  const next = intercepted(call, async (request) => {
    const given = request.stream ? message : request.message;
    const told = create(method.output, await impl(given, contextOf(context, request)));
    return { method, stream: false, message: told, ...answeredOf(context) };
  });
  const told = await next({ method, stream: false, message, ...askedOf(context) });
  answer.begin(context.responseHeader);
  if (!told.stream) await answer.send(frameOf(method.output, told.message));
}

async function serveStream(
  call: DirectCall,
  { method, impl }: DirectSpec & { kind: "server_streaming" },
  context: Context,
  answer: DirectAnswer,
): Promise<void> {
  // Read only when it is asked for: what is wrong with it is a failure of the call that the interceptors see.
  const message = readLazily(() => readMessage(call));
  const next = intercepted(call, async (request) => {
    const given = request.stream ? await only(request.message) : request.message;
    const told = impl(given, contextOf(context, request));
    // Completed below, where they are encoded: nothing in between looks into them.
    const message = told as AsyncIterable<Message>;
    return { method, stream: true, message, ...answeredOf(context) };
  });
  const told = await next({ method, stream: true, message, ...askedOf(context) });
  answer.begin(context.responseHeader);
  if (!told.stream) return;
  for await (const one of told.message) {
    if (answer.isLeft) return;
    const sending = answer.send(frameOf(method.output, create(method.output, one)));
    if (sending !== undefined) await sending;
  }
}

/** The context that an implementation has of its call, and the function that ends it. */
interface Context extends HandlerContext {
  abort(reason: unknown): void;
}

function openContext(
  { spec, request, values }: DirectCall,
  requestHeader: Headers,
  timeoutMs: number | undefined,
): Context {
  const { method } = spec;
  const dueMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  const ending = new AbortController();
  return {
    service: method.parent,
    method,
    protocolName: "grpc",
    requestMethod: "POST",
    url: `${request.scheme}://${request.authority}${request.url}`,
    requestHeader,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    signal: ending.signal,
    timeoutMs: () => (dueMs === undefined ? undefined : dueMs - performance.now()),
    values,
    abort: (reason) => ending.abort(reason),
  };
}

/** The context as the interceptors left the request. */
function contextOf(context: Context, request: AnyRequest): HandlerContext {
  const { service, header: requestHeader, signal, contextValues: values } = request;
  return { ...context, service, requestHeader, signal, values };
}

function askedOf({ service, requestMethod, url, signal, requestHeader, values }: Context) {
  return { service, requestMethod, url, signal, header: requestHeader, contextValues: values };
}

function answeredOf({ service, responseHeader, responseTrailer }: Context) {
  return { service, header: responseHeader, trailer: responseTrailer };
}

function intercepted({ interceptors }: DirectCall, innermost: Next): Next {
  return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}

async function readMessage({ spec, request, response }: DirectCall): Promise<Message> {
  const source = connectionOf(request)?.address ?? "";
  const bytes = await readEnvelope(request).catch(async (error: unknown) => {
    finishRequest(request, response);
    // Many may be cut short at once, when a connection ends.
    await loopBudget.turn(source);
    throw error;
  });
  return await loopBudget.do(source, () => {
    checkParts(bytes);
    try {
      return fromBinary(spec.method.input, bytes);
    } catch (cause) {
      throw refuse("MALFORMED_MESSAGE", "the message cannot be decoded", { cause });
    }
  });
}

async function* readLazily(read: () => Promise<Message>) {
  yield await read();
}

async function only(messages: AsyncIterable<Message>): Promise<Message> {
  for await (const message of messages) return message;
  throw refuse("MALFORMED_MESSAGE", "the request has no message");
}

/** The error of a call that never reached the interceptors, and so was neither logged nor measured. */
function early({ spec, onEarlyError }: DirectCall, error: unknown): ConnectError {
  const mapped = mapError(error);
  if (spec.kind === "unary") onEarlyError(mapped);
  return mapped;
}

function headersOf({ headers }: Http2ServerRequest): Headers {
  const converted = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    converted.set(name, Array.isArray(value) ? value.join(", ") : value);
  }
  return converted;
}
