import {
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import type { MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";

/** A message, or its bytes: a hot path may encode once and send many times. */
export type Encodable = Message | Buffer;

/** A service for grpc-js, by the names of its methods, for example "Heartbeat". Servers and clients use the same. */
export type GrpcService = ServiceDefinition & Readonly<Record<string, GrpcMethod>>;

/** A method for grpc-js: its path, and how messages become bytes and back. */
export type GrpcMethod = MethodDefinition<Encodable, Encodable>;

/** What a handler gets in place of a request above 64 KiB. Smaller ones do not pass here, so that frequent messages cost nothing. */
export type LargeRequests = (request: Message) => Message;

/** A grpc-js service definition from a protobuf-es descriptor. Messages must be made with create(). */
export function toGrpcService(service: DescService, large?: LargeRequests): GrpcService {
  return Object.fromEntries(
    service.methods.map((method) => [method.name, toGrpcMethod(method, large)]),
  );
}

/** The grpc-js definition of one method. */
export function toGrpcMethod(method: DescMethod, large?: LargeRequests): GrpcMethod {
  const { methodKind } = method;
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: serialiser(method.input),
    requestDeserialize: deserialiser(method.input, large),
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

const LARGE_BYTES = 65_536;

function deserialiser(desc: DescMessage, large?: LargeRequests): (bytes: Buffer) => Message {
  if (large === undefined) return (bytes) => fromBinary(desc, bytes);
  return (bytes) => {
    const message = fromBinary(desc, bytes);
    return bytes.length <= LARGE_BYTES ? message : large(message);
  };
}
