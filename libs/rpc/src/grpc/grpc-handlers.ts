import type { DescMethod, DescService, Message, MessageShape } from "@bufbuild/protobuf";
import type { FrameHandler } from "./frame-call.ts";

type Input<M extends DescMethod> = MessageShape<M["input"]>;

/** Decodes a request. An error that it throws ends the call. */
type RequestDecoder = (bytes: Buffer) => Message;

/** The handlers of a service, keyed by the local names of its methods. */
export type GrpcHandlers<S extends DescService> = {
  readonly [M in keyof S["method"]]: FrameHandler<Input<S["method"][M]>>;
};

/** Decoders that replace the generated ones, keyed by the local names of the methods. */
export type GrpcDecoders<S extends DescService> = {
  readonly [M in keyof S["method"]]?: (bytes: Buffer) => Input<S["method"][M]>;
};

/** A service with its handlers and decoders, keyed by the local names of the methods, without their static types. */
export interface GrpcRoute {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, FrameHandler<unknown>>>;
  readonly decoders: Readonly<Record<string, RequestDecoder>>;
}

/** Combine a service and its handlers. A missing or misspelled method is a compile error. */
export function grpcRoute<S extends DescService>(
  service: S,
  handlers: GrpcHandlers<S>,
  decoders: GrpcDecoders<S> = {},
): GrpcRoute {
  return {
    service,
    handlers: { ...handlers } as unknown as GrpcRoute["handlers"],
    decoders: { ...decoders } as GrpcRoute["decoders"],
  };
}
