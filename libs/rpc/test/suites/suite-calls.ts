import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { headerTimeout, parseTimeout } from "@connectrpc/connect/protocol-grpc";
import type { FrameCall, FrameHandler } from "../../src/grpc/frame-call.ts";
import { oneRequest } from "../../src/grpc/grpc-builtins.ts";
import { CallRequests, type GrpcRoute, type PolicyTable } from "../../src/index.ts";

/** What the handlers of the suites' services use of a call. Connect's HandlerContext has it. */
export interface SuiteContext {
  readonly requestHeader: Headers;
  readonly responseHeader: Headers;
  readonly responseTrailer: Headers;
  /** Absent on the agents' port. */
  readonly url?: string;
  readonly requestMethod?: string;
  timeoutMs(): number | undefined;
}

/** The fields of a message whose type is known only at run time. */
export type Fields = Message & Readonly<Record<string, unknown>>;

/** The fields of a message to create. */
export type Init = Record<string, unknown>;

/** The handler of a method: it gets all requests, and yields all responses. */
export type SuiteHandler = (requests: AsyncIterable<Fields>, context: SuiteContext) => AsyncIterable<Init>;

/** The handlers of a service, keyed by the local names of its methods. */
export type SuiteHandlers = Readonly<Record<string, SuiteHandler>>;

/** The handlers for the API's port. */
export function toConnect(service: DescService, handlers: SuiteHandlers): ServiceImpl<DescService> {
  return Object.fromEntries(
    served(service, handlers).map(([{ localName, methodKind }, handler]) => {
      const takesOne = methodKind === "unary" || methodKind === "server_streaming";
      const run = (given: never, context: SuiteContext) => handler(takesOne ? just(given) : given, context);
      const givesOne = methodKind === "unary" || methodKind === "client_streaming";
      const method = givesOne ? (given: never, context: SuiteContext) => first(run(given, context)) : run;
      // The methods of the service, and so their types, are known only at run time.
      return [localName, method as never];
    }),
  );
}

/** The same handlers for the agents' port. */
export function toFrames(service: DescService, handlers: SuiteHandlers): GrpcRoute {
  const methods = served(service, handlers).map(([method, handler]) => {
    const { methodKind } = method;
    const takesOne = methodKind === "unary" || methodKind === "server_streaming";
    const open: FrameHandler<Fields>["open"] = (call, headers) => {
      const requests = new CallRequests<Fields>(call);
      answer(call, method, handler(requests, contextOf(call, headers)));
      return requests;
    };
    const openOne: FrameHandler<Fields>["open"] = (call, headers) =>
      oneRequest<Fields>((request) => {
        answer(call, method, handler(just(request), contextOf(call, headers)));
        return null;
      }).open(call, headers);
    return [method.localName, { open: takesOne ? openOne : open }] as const;
  });
  return { service, handlers: Object.fromEntries(methods) as GrpcRoute["handlers"], decoders: {} };
}

/** Policies that let anyone call the methods of a service. */
export function openPolicies({ methods }: DescService): PolicyTable {
  return Object.fromEntries(
    methods.map(({ parent, name, methodKind }) => {
      const deadlineMs = methodKind === "unary" ? 60_000 : 0;
      return [`${parent.typeName}/${name}`, { caller: "anyone", deadlineMs, idempotent: true }] as const;
    }),
  );
}

function served({ methods }: DescService, handlers: SuiteHandlers) {
  return methods.flatMap((method) => {
    const handler = handlers[method.localName];
    return handler === undefined ? [] : [[method, handler] as const];
  });
}

async function* just(request: Fields): AsyncIterable<Fields> {
  yield request;
}

async function first(responses: AsyncIterable<Init>): Promise<Init> {
  for await (const response of responses) return response;
  throw new Error("the handler yielded no response");
}

interface CallContext extends SuiteContext {
  readonly call: FrameCall<Fields>;
}

const contexts = new WeakMap<FrameCall<Fields>, CallContext>();

function contextOf(call: FrameCall<Fields>, headers: Readonly<Record<string, string | string[] | undefined>>) {
  const requestHeader = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(":") && value !== undefined) requestHeader.set(name, String(value));
  }
  const { timeoutMs } = parseTimeout(requestHeader.get(headerTimeout), Number.POSITIVE_INFINITY);
  const responseHeader = new Headers();
  const context = { call, requestHeader, responseHeader, responseTrailer: new Headers(), timeoutMs: () => timeoutMs };
  contexts.set(call, context);
  return context;
}

function answer(...[call, ...rest]: Parameters<typeof run>): void {
  run(call, ...rest).catch((error: unknown) => call.end(error));
}

/** Send the responses of a call on the agents' port, with the metadata that the handler sets. */
async function run(call: FrameCall<Fields>, { output }: DescMethod, responses: AsyncIterable<Init>): Promise<void> {
  const context = contexts.get(call);
  const trailers = () => Object.fromEntries(context?.responseTrailer ?? []);
  const begin = () => call.sendMetadata(Object.fromEntries(context?.responseHeader ?? []));
  try {
    for await (const response of responses) {
      begin();
      call.write(Buffer.from(toBinary(output, create(output, response))));
    }
    begin();
    call.end(undefined, trailers());
  } catch (error) {
    begin();
    call.end(error, trailers());
  }
}
