import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";

/** The error of a call that is refused, with its reason as the real control plane tells it. */
export function refusal(message: string, reason: string, code = Code.FailedPrecondition): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { reason, domain: "rollcall.io" } };
  return new ConnectError(message, code, undefined, [info]);
}

/** The error of a call whose token is missing or wrong. */
export function unauthenticated(message: string, reason: string): ConnectError {
  return refusal(message, reason, Code.Unauthenticated);
}
