import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import { create, type Message } from "@bufbuild/protobuf";
import type { ConnectError, ContextValues, HandlerContext, Interceptor, MethodImplSpec } from "@connectrpc/connect";
import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-grpc";
import { mapError, type RefusalError, refuse } from "@rollcall/errors";
import { finishRequest } from "../answers/answer-error.ts";
import { endingKey, identityKey } from "../calls/call-context.ts";
import type { HttpHandler } from "../calls/http-handler.ts";
import { LargeTurn } from "../calls/large-turn.ts";
import { decodeMessage, noMessage } from "../calls/message-parts.ts";
import { connectionOf } from "../connections/connection.ts";
import { loopBudget } from "../limits/loop-budget.ts";
import { type AnswerHeaders, DirectAnswer } from "./direct-answer.ts";
import { frameOf, readEnvelope } from "./grpc-envelope.ts";

/** A method that takes one request, so that its calls can be served without Connect's pipeline. */
export type DirectSpec = Extract<MethodImplSpec, { kind: "unary" | "server_streaming" }>;

/** A call of a method that takes one request. */
export interface DirectCall {
  readonly spec: DirectSpec;
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly values: ContextValues;
  readonly interceptors: readonly Interceptor[];
  /** Maximum size of the request in bytes. */
  readonly mostBytes: number;
  /** Called for a unary call that failed before any interceptor saw it. */
  onEarlyError(error: ConnectError): void;
}

/** Whether a call is plain gRPC over HTTP/2, binary and uncompressed. */
export function isDirect(...[request, response]: Parameters<HttpHandler>): boolean {
  if (!("stream" in response) || request.method !== "POST") return false;
  const { "content-type": type, "grpc-encoding": encoding } = request.headers;
  const isPlain = encoding === undefined || encoding === "identity";
  return isPlain && (type === "application/grpc" || type === "application/grpc+proto");
}

/**
 * Serve a gRPC call over HTTP/2 by passing it straight from the HTTP stream to the interceptors and the
 * implementation. Connect's own pipeline supports all protocols, and needs several times the CPU time per call and
 * the memory per open stream; see docs/decisions/0021. Responses are not compressed: gRPC lets the server choose.
 */
export async function serveDirect(call: DirectCall): Promise<void> {
  const { spec, request, response } = call;
  const answer = new DirectAnswer(response);
  const header = headersOf(request);
  const { timeoutMs, error: malformed } = parseTimeout(header.get(headerTimeout), NO_LIMIT);
  const context = new DirectContext(call, header, timeoutMs);
  const timer = timeoutMs === undefined ? undefined : abortAfter(timeoutMs, context);
  // Use the address as the source for the loop's budget. When a connection breaks, a thousand streams can end at
  // the same time, and each has work to stop and a log line to write.
  const source = connectionOf(request)?.address ?? "";
  const onClose = () => loopBudget.run(source, () => context.abort(callerLeft()));
  response.stream.once("close", onClose);
  try {
    if (malformed !== undefined) throw early(call, malformed);
    if (spec.kind === "unary") await serveUnary(call, spec, context, answer);
    else await serveStream(call, spec, context, answer);
    answer.end(context);
  } catch (error) {
    answer.end(context, mapError(error));
  } finally {
    response.stream.off("close", onClose);
    clearTimeout(timer);
    // Abort in any case, because listeners for the end of a call must run however it ended.
    context.abort(CALL_ENDED);
  }
}

function callerLeft(): RefusalError {
  return refuse("CANCELLED", "the caller disconnected");
}

// The reason with which a call's signal aborts when the call ends. All calls share this exception, because creating
// one is a considerable part of the cost of a small call.
const CALL_ENDED = new DOMException("the call has ended", "AbortError");
const NO_LIMIT = Number.POSITIVE_INFINITY;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

function abortAfter(timeoutMs: number, context: DirectContext): NodeJS.Timeout {
  const message = `the call took longer than its caller's timeout of ${timeoutMs} ms`;
  const abort = () => context.abort(refuse("DEADLINE_EXCEEDED", message));
  return setTimeout(abort, Math.min(timeoutMs, LONGEST_TIMER_MS));
}

type Next = Parameters<Interceptor>[0];
type AnyRequest = Parameters<Next>[0];

async function serveUnary(
  call: DirectCall,
  { method, impl }: DirectSpec & { kind: "unary" },
  context: DirectContext,
  answer: DirectAnswer,
): Promise<void> {
  const message = await readMessage(call).catch((error: unknown) => {
    throw early(call, error);
  });
  const next = intercepted(call, async (request) => {
    const given = request.stream ? message : request.message;
    const told = create(method.output, await impl(given, context.seenBy(request)));
    return { method, stream: false, message: told, ...context.answered };
  });
  const told = await next({ method, stream: false, message, ...context.asked });
  answer.begin(context);
  if (!told.stream) await answer.send(frameOf(method.output, told.message));
}

async function serveStream(
  call: DirectCall,
  spec: DirectSpec & { kind: "server_streaming" },
  context: DirectContext,
  answer: DirectAnswer,
): Promise<void> {
  const messages = await openStream(call, spec, context);
  const { output } = spec.method;
  for await (const one of messages) {
    if (answer.isLeft) return;
    // Send the headers with the first message: until then, the implementation can set them.
    answer.begin(context);
    const sending = answer.send(frameOf(output, create(output, one)));
    if (sending !== undefined) await sending;
  }
}

/** Start a stream. This is a separate function, so that only the messages stay in memory while they are sent. */
async function openStream(
  call: DirectCall,
  { method, impl }: DirectSpec & { kind: "server_streaming" },
  context: DirectContext,
): Promise<AsyncIterable<Message>> {
  // Decode lazily, so that the interceptors see an invalid message as a failure of the call.
  const message = readLazily(() => readMessage(call));
  const next = intercepted(call, async (request) => {
    const given = request.stream ? await only(request.message) : request.message;
    const told = impl(given, context.seenBy(request));
    // The messages may be partial: serveStream() completes them when it encodes them, and no code in between reads
    // them.
    const message = told as AsyncIterable<Message>;
    return { method, stream: true, message, ...context.answered };
  });
  const told = await next({ method, stream: true, message, ...context.asked });
  return told.stream ? told.message : none();
}

/** The context of a call that the implementation receives. For a watch, it stays in memory for days. */
class DirectContext implements HandlerContext, AnswerHeaders {
  readonly method: HandlerContext["method"];
  readonly protocolName = "grpc";
  readonly requestMethod = "POST";
  readonly responseTrailer = new Headers();
  values: ContextValues;
  requestHeader: Headers;
  service: HandlerContext["service"];
  signal: AbortSignal;
  readonly #ending = new AbortController();
  readonly #request: Http2ServerRequest;
  readonly #dueMs: number | null;
  #header: Headers | null = null;

  constructor({ spec, request, values }: DirectCall, requestHeader: Headers, timeoutMs: number | undefined) {
    const { method } = spec;
    this.method = method;
    this.service = method.parent;
    this.requestHeader = requestHeader;
    this.values = values;
    this.signal = this.#ending.signal;
    this.#request = request;
    this.#dueMs = timeoutMs === undefined ? null : performance.now() + timeoutMs;
    values.set(endingKey, this.#ending);
  }

  get url(): string {
    const { scheme, authority, url } = this.#request;
    return `${scheme}://${authority}${url}`;
  }

  get responseHeader(): Headers {
    this.#header ??= new Headers();
    return this.#header;
  }

  /** Update the context from the request that the interceptors passed on. */
  seenBy({ service, header, signal, contextValues }: AnyRequest): this {
    this.service = service;
    this.requestHeader = header;
    this.signal = signal;
    this.values = contextValues;
    return this;
  }

  /** The request as the interceptors see it, without its message. */
  get asked() {
    const { service, requestMethod, url, signal, requestHeader: header, values: contextValues } = this;
    return { service, requestMethod, url, signal, header, contextValues };
  }

  /** The response as the interceptors see it. */
  get answered() {
    const { service, responseHeader: header, responseTrailer: trailer } = this;
    return { service, header, trailer };
  }

  takeHeader(): Headers {
    const { responseHeader } = this;
    this.#header = null;
    return responseHeader;
  }

  timeoutMs(): number | undefined {
    return this.#dueMs === null ? undefined : this.#dueMs - performance.now();
  }

  abort(reason: unknown): void {
    this.#ending.abort(reason);
  }
}

function intercepted({ interceptors }: DirectCall, innermost: Next): Next {
  return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}

async function readMessage(call: DirectCall): Promise<Message> {
  const turn = new LargeTurn(call.values);
  try {
    return await readInTurn(call, turn);
  } finally {
    turn.end();
  }
}

async function readInTurn(
  { spec, request, response, values, mostBytes }: DirectCall,
  turn: LargeTurn,
): Promise<Message> {
  const source = connectionOf(request)?.address ?? "";
  // Start to read immediately: a stream without a reader can end unnoticed.
  const reading = readEnvelope(request, mostBytes, turn);
  const identifying = values.get(identityKey);
  if (identifying !== null) {
    reading.catch(() => {});
    const identity = await identifying;
    if (!identity.ok) {
      // Decode nothing of the request, because the call will be refused. Interceptors get an empty message.
      finishRequest(request, response);
      return create(spec.method.input);
    }
  }
  const bytes = await reading.catch(async (error: unknown) => {
    finishRequest(request, response);
    // Wait for a turn: when a connection breaks, many calls can fail here at the same moment.
    await loopBudget.turn(source);
    throw error;
  });
  return await loopBudget.do(source, () => decodeMessage(spec.method.input, bytes));
}

async function* readLazily(read: () => Promise<Message>) {
  yield await read();
}

async function* none(): AsyncIterable<Message> {}

async function only(messages: AsyncIterable<Message>): Promise<Message> {
  for await (const message of messages) return message;
  throw noMessage();
}

/**
 * Convert the error of a call that did not reach the interceptors, which would have logged and measured it. If the
 * call is unary, report the error.
 */
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
