import type { DescMethod, DescService, MessageShape } from "@bufbuild/protobuf";
import type {
  handleBidiStreamingCall,
  handleClientStreamingCall,
  handleServerStreamingCall,
  handleUnaryCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { FrameHandler } from "./frame-call.ts";
import type { RequestDecoder } from "./grpc-service.ts";

type Input<M extends DescMethod> = MessageShape<M["input"]>;
/** What a handler sends: a message, or bytes that it has encoded itself. */
type Output<M extends DescMethod> = MessageShape<M["output"]> | Buffer;

/** The handler of a method on the agents' port: for grpc-js, or a FrameHandler, whose calls bypass grpc-js. */
export type GrpcHandler<M extends DescMethod> =
  | FrameHandler<Input<M>>
  | (M["methodKind"] extends "unary"
      ? handleUnaryCall<Input<M>, Output<M>>
      : M["methodKind"] extends "server_streaming"
        ? handleServerStreamingCall<Input<M>, Output<M>>
        : M["methodKind"] extends "client_streaming"
          ? handleClientStreamingCall<Input<M>, Output<M>>
          : handleBidiStreamingCall<Input<M>, Output<M>>);

/** The handlers of a service, keyed by the local names of its methods. */
export type GrpcHandlers<S extends DescService> = {
  readonly [M in keyof S["method"]]: GrpcHandler<S["method"][M]>;
};

/** Decoders that replace the generated ones, keyed by the local names of the methods. */
export type GrpcDecoders<S extends DescService> = {
  readonly [M in keyof S["method"]]?: (bytes: Buffer) => Input<S["method"][M]>;
};

/** A service with its handlers, without their static types. */
export interface GrpcRoute {
  readonly service: DescService;
  readonly handlers: UntypedServiceImplementation;
  readonly decoders: Readonly<Record<string, RequestDecoder>>;
  /** Handlers whose calls bypass grpc-js, keyed by the local names of the methods. */
  readonly frames: Readonly<Record<string, FrameHandler<unknown>>>;
}

/** Combine a service and its handlers. A missing or misspelled method is a compile error. */
export function grpcRoute<S extends DescService>(
  service: S,
  handlers: GrpcHandlers<S>,
  decoders: GrpcDecoders<S> = {},
): GrpcRoute {
  const all = Object.entries({ ...handlers } as Readonly<Record<string, unknown>>);
  const withStreams = all.filter(([, handler]) => typeof handler === "function");
  const withFrames = all.filter(([, handler]) => typeof handler !== "function");
  return {
    service,
    handlers: Object.fromEntries(withStreams) as UntypedServiceImplementation,
    decoders: { ...decoders } as Readonly<Record<string, RequestDecoder>>,
    frames: Object.fromEntries(withFrames) as Readonly<Record<string, FrameHandler<unknown>>>,
  };
}
