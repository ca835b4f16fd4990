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

/** A message, or its bytes, so that a hot path can encode once and send many times. */
export type Encodable = Message | Buffer;

/**
 * A service for grpc-js, keyed by the names of its methods, such as "Heartbeat". Servers and clients use
 * the same definition.
 */
export type GrpcService = ServiceDefinition & Readonly<Record<string, GrpcMethod>>;

/** A method for grpc-js: its path, and how messages are encoded and decoded. */
export type GrpcMethod = MethodDefinition<Encodable, Encodable>;

/** Decodes a request. An error that it throws ends the call. */
export type RequestDecoder = (bytes: Buffer) => Message;

/**
 * Make a grpc-js service definition from a protobuf-es descriptor. Messages must be created with create().
 *
 * @param decoders replace the generated decoders of requests; keyed by the local names of the methods.
 */
export function toGrpcService(
  service: DescService,
  decoders: Readonly<Record<string, RequestDecoder>> = {},
): GrpcService {
  return Object.fromEntries(
    service.methods.map((method) => [method.name, toGrpcMethod(method, decoders[method.localName])]),
  );
}

/** Make the grpc-js definition of one method. */
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
    // Return a view of the bytes instead of a copy.
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

function deserialiser(desc: DescMessage): RequestDecoder {
  return (bytes) => fromBinary(desc, bytes);
}
