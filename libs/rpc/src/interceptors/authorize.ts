import type { Interceptor } from "@connectrpc/connect";
import type { Authenticator } from "@rollcall/identity";
import { callerKey } from "../calls/call-context.ts";
import { findCaller } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import { beforeAbort } from "./end-after-abort.ts";

/** Identify the caller, and admit only callers that the method's policy row allows. */
export function authorize(policies: PolicyTable, authenticate: Authenticator): Interceptor {
  return (next) => async (request) => {
    const method = methodName(request.method);
    const policy = policies[method];
    if (policy === undefined) throw new Error(`${method} has no policy row`);
    await findCaller(
      policy.caller,
      request.header.get("authorization"),
      (bearer) => beforeAbort(authenticate(bearer), request.signal),
      // A caller that lacks the role is still named in the log and in the audit.
      (caller) => request.contextValues.set(callerKey, caller),
    );
    return await next(request);
  };
}
