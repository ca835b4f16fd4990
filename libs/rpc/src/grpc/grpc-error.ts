import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { Metadata, type StatusObject } from "@grpc/grpc-js";
import { type Status, StatusSchema } from "@rollcall/api/google/rpc/status_pb";
import { mapError } from "@rollcall/errors";

/** The error of a failed call of a grpc-js client. It has the fields of grpc-js' ServiceError that are used here. */
interface GrpcServiceError {
  readonly code: number;
  readonly details: string;
  readonly metadata?: { get(key: string): readonly (string | Uint8Array)[] };
}

/** The gRPC trailer that carries an error's details. */
export const DETAILS_TRAILER = "grpc-status-details-bin";

/**
 * Convert the error of a grpc-js client, so that reasonOf() and describeError() understand it. Anything that is not a
 * gRPC status becomes an UNKNOWN error with the same text.
 */
export function errorFromGrpc(error: unknown): ConnectError {
  if (!isServiceError(error)) return ConnectError.from(error);
  const code = error.code in Code ? (error.code as Code) : Code.Unknown;
  const connectError = new ConnectError(error.details, code, undefined, undefined, error);
  connectError.details = (detailsOf(error)?.details ?? []).map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  return connectError;
}

function isServiceError(error: unknown): error is GrpcServiceError {
  if (typeof error !== "object" || error === null) return false;
  const { code, details }: { code?: unknown; details?: unknown } = error;
  return typeof code === "number" && typeof details === "string";
}

function detailsOf(error: GrpcServiceError): Status | null {
  const bytes = error.metadata?.get(DETAILS_TRAILER)[0];
  if (!(bytes instanceof Uint8Array)) return null;
  try {
    return fromBinary(StatusSchema, bytes);
  } catch {
    // Ignore details in another format: the code and the message are still useful.
    return null;
  }
}

/**
 * Convert a thrown value to the status of a failed call. A grpc-js handler passes the status to the callback of a
 * unary call, or emits it as the "error" of a stream. See mapError() for the conversion.
 */
export function toGrpcStatus(error: unknown): StatusObject {
  const mapped = mapError(error);
  const metadata = new Metadata();
  metadata.set(DETAILS_TRAILER, encodeStatus(mapped));
  // Connect and gRPC use the same codes.
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
