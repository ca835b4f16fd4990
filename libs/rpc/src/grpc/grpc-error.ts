import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Status, StatusSchema } from "@rollcall/api/google/rpc/status_pb";

/** The error of a failed call of a grpc-js client. It has the fields of grpc-js' ServiceError that are used here. */
interface GrpcServiceError {
  readonly code: number;
  readonly details: string;
  readonly metadata?: { get(key: string): readonly (string | Uint8Array)[] };
}

/** The gRPC trailer that carries an error's details. */
const DETAILS_TRAILER = "grpc-status-details-bin";

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
