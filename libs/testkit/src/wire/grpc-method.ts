import { type DescMessage, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";

/** A message, or raw bytes that match no schema. */
export type Encodable = Message | Buffer;

/**
 * Create a method for a plain grpc-js server with the codecs of the library, without the checks of Rollcall's
 * servers.
 */
export function bareGrpcMethod({ parent, name, methodKind, input, output }: DescMethod) {
  return {
    path: `/${parent.typeName}/${name}`,
    requestStream: methodKind === "client_streaming" || methodKind === "bidi_streaming",
    responseStream: methodKind === "server_streaming" || methodKind === "bidi_streaming",
    requestSerialize: encoderOf(input),
    requestDeserialize: (bytes) => fromBinary(input, bytes),
    responseSerialize: encoderOf(output),
    responseDeserialize: (bytes) => fromBinary(output, bytes),
  } satisfies MethodDefinition<Encodable, Encodable>;
}

function encoderOf(schema: DescMessage): (message: Encodable) => Buffer {
  return (message) => (Buffer.isBuffer(message) ? message : Buffer.from(toBinary(schema, message)));
}
