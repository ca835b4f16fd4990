import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { decodeMessage } from "../calls/message-parts.ts";

/** A message, or its bytes: a hot path may encode once and send many times. */
export type Encodable = Message | Buffer;

/** A service for grpc-js, by the names of its methods, for example "Heartbeat". Servers and clients use the same. */
export type GrpcService = ServiceDefinition & Readonly<Record<string, GrpcMethod>>;

/** A method for grpc-js: its path, and how messages become bytes and back. */
export type GrpcMethod = MethodDefinition<Encodable, Encodable>;

/** How a request is decoded; what it throws ends the call with INTERNAL, as bytes do that are no message. */
export type RequestDecoder = (bytes: Buffer) => Message;

/**
 * A grpc-js service definition from a protobuf-es descriptor. Messages must be made with create().
 *
 * @param decoders in place of the generated ones, by the methods' local names.
 */
export function toGrpcService(
  service: DescService,
  decoders: Readonly<Record<string, RequestDecoder>> = {},
): GrpcService {
  return Object.fromEntries(
    service.methods.map((method) => [method.name, toGrpcMethod(method, decoders[method.localName])]),
  );
}

/** The grpc-js definition of one method. */
export function toGrpcMethod(method: DescMethod, decodeRequest?: RequestDecoder): GrpcMethod {
  const { methodKind } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: serialiser(method.input),
    requestDeserialize: decodeRequest ?? ((bytes) => decodeMessage(method.input, bytes)),
    responseSerialize: serialiser(method.output),
    responseDeserialize: deserialiser(method.output),
    originalName: method.localName,
  };
}

function serialiser(desc: DescMessage): (message: Encodable) => Buffer {
  return (message) => {
    if (Buffer.isBuffer(message)) return message;
    const bytes = toBinary(desc, message);
    // A view, not a copy.
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function deserialiser(desc: DescMessage): RequestDecoder {
  return (bytes) => fromBinary(desc, bytes);
}
