import { type DescMessage, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import type { MethodDefinition } from "@grpc/grpc-js";

/** A message, or bytes in place of one, for what no schema knows. */
type Encodable = Message | Buffer;

/** A method for a server of bare grpc-js, with the library's own codecs: none of what Rollcall's servers check. */
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
