import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";

/** A failed call, for display. */
export interface CallError {
  /**
   * The ErrorReason, such as "NODE_ALREADY_APPROVED"; the name of the status code when there is
   * none.
   */
  readonly reason: string;
  readonly message: string;
  readonly kind: "signed-out" | "forbidden" | "missing" | "invalid" | "away" | "other";
}

/** Convert the error of a call. */
export function toCallError(cause: unknown): CallError {
  const error = ConnectError.from(cause);
  const [info] = error.findDetails(ErrorInfoSchema);
  const reason = (info?.reason ?? Code[error.code] ?? "UNKNOWN").replace(/^ERROR_REASON_/, "");
  return { reason, message: error.rawMessage || "The call failed.", kind: kindOf(error) };
}

function kindOf({ code, cause }: ConnectError): CallError["kind"] {
  switch (code) {
    case Code.Unauthenticated:
      return "signed-out";
    case Code.PermissionDenied:
      return "forbidden";
    case Code.NotFound:
      return "missing";
    case Code.InvalidArgument:
      return "invalid";
    case Code.Unavailable:
    case Code.DeadlineExceeded:
    case Code.Aborted:
    // The page itself canceled the call, for example after a timeout.
    case Code.Canceled:
      return "away";
    // The error of fetch() when there is no network.
    case Code.Unknown:
      return cause instanceof TypeError ? "away" : "other";
    default:
      return "other";
  }
}
