import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { StatusSchema } from "@rollcall/api/google/rpc/status_pb";
import { mapError } from "@rollcall/errors";
import { DETAILS_TRAILER } from "./grpc-error.ts";

/**
 * What a grpc-js handler ends a failed call with: hand it to the callback of a unary call, or emit it as the "error" of
 * a stream. Whatever was thrown is mapped first; see mapError().
 */
export function toGrpcStatus(error: unknown): StatusObject {
  const mapped = mapError(error);
  const metadata = new Metadata();
  metadata.set(DETAILS_TRAILER, encodeStatus(mapped));
  // Connect's codes are gRPC's.
  return { code: mapped.code as number, details: mapped.rawMessage, metadata };
}

function encodeStatus(error: ConnectError): Buffer {
  const details = error.details.map((detail) =>
    "desc" in detail
      ? anyPack(detail.desc, create(detail.desc, detail.value))
      : { typeUrl: `type.googleapis.com/${detail.type}`, value: detail.value },
  );
  const status = create(StatusSchema, { code: error.code, message: error.rawMessage, details });
  return Buffer.from(toBinary(StatusSchema, status));
}
