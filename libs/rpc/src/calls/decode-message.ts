import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { refuse } from "@rollcall/errors";
import { hasTooManyParts } from "./message-parts.ts";

/**
 * Decode a message. Throws MESSAGE_TOO_LARGE for one of too many parts, and what protobuf throws for bytes that are no
 * message.
 */
export function decodeMessage<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  checkParts(bytes);
  return fromBinary(schema, bytes);
}

/** Check that a message in protobuf or JSON can be decoded within a moment. Throws MESSAGE_TOO_LARGE. */
export function checkParts(bytes: Uint8Array): void {
  if (hasTooManyParts(bytes)) {
    throw refuse("MESSAGE_TOO_LARGE", "the message has more fields than any request needs");
  }
}
