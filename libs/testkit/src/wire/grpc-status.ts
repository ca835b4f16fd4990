import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { mapError } from "@rollcall/errors";

const DETAILS_TRAILER = "grpc-status-details-bin";

/** Convert an error to the status of a grpc-js server, with the details that Rollcall's servers send. */
export function toGrpcStatus(error: unknown): StatusObject {
  const mapped = mapError(error);
  const details = setTrailerStatus(new Headers(), mapped).get(DETAILS_TRAILER) ?? "";
  const metadata = new Metadata();
  metadata.set(DETAILS_TRAILER, Buffer.from(details, "base64"));
  // Connect and gRPC use the same codes.
  return { code: mapped.code as number, details: mapped.rawMessage, metadata };
}
