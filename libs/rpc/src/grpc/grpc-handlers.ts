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
/** A handler may send bytes that it encoded itself. */
type Output<M extends DescMethod> = MessageShape<M["output"]> | Buffer;

/** The grpc-js handler of a method; one of two streams may be taken without grpc-js' stream. */
export type GrpcHandler<M extends DescMethod> = M["methodKind"] extends "unary"
  ? handleUnaryCall<Input<M>, Output<M>>
  : M["methodKind"] extends "server_streaming"
    ? handleServerStreamingCall<Input<M>, Output<M>>
    : M["methodKind"] extends "client_streaming"
      ? handleClientStreamingCall<Input<M>, Output<M>>
      : handleBidiStreamingCall<Input<M>, Output<M>> | FrameHandler<Input<M>>;

/** The grpc-js handlers of a service, by its methods' local names. */
export type GrpcHandlers<S extends DescService> = {
  readonly [M in keyof S["method"]]: GrpcHandler<S["method"][M]>;
};

/** Decoders in place of the generated ones, by the methods' local names. */
export type GrpcDecoders<S extends DescService> = {
  readonly [M in keyof S["method"]]?: (bytes: Buffer) => Input<S["method"][M]>;
};

/** A service with its grpc-js handlers, their types forgotten. */
export interface GrpcRoute {
  readonly service: DescService;
  readonly handlers: UntypedServiceImplementation;
  readonly decoders: Readonly<Record<string, RequestDecoder>>;
  /** Handlers that take calls without grpc-js' streams, by the methods' local names. */
  readonly frames: Readonly<Record<string, FrameHandler<unknown>>>;
}

/** Put a service and its handlers together; a missing or misspelled method does not compile. */
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
