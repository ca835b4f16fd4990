import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";

/** A failed call, for people. */
export interface CallError {
  /** The ErrorReason, for example "NODE_ALREADY_APPROVED"; the code's name where there is none. */
  readonly reason: string;
  readonly message: string;
  readonly kind: "signed-out" | "forbidden" | "missing" | "invalid" | "away" | "other";
}

/** Read what a call failed with. */
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
    // The page itself gave up, as after too long a silence.
    case Code.Canceled:
      return "away";
    // What fetch() throws when there is no network.
    case Code.Unknown:
      return cause instanceof TypeError ? "away" : "other";
    default:
      return "other";
  }
}
