import type { Interceptor } from "@connectrpc/connect";
import type { Authenticator } from "@rollcall/identity";
import { callerKey } from "../calls/call-context.ts";
import { findCaller } from "../calls/find-caller.ts";
import { methodName } from "../calls/method-name.ts";
import type { PolicyTable } from "../calls/policy.ts";
import { beforeAbort } from "./end-after-abort.ts";

/** Find out who calls, and let only those pass whom the method's policy row allows. */
export function authorize(policies: PolicyTable, authenticate: Authenticator): Interceptor {
  return (next) => async (request) => {
    const method = methodName(request.method);
    const policy = policies[method];
    if (policy === undefined) throw new Error(`${method} has no policy row`);
    await findCaller(
      policy.caller,
      request.header.get("authorization"),
      (bearer) => beforeAbort(authenticate(bearer), request.signal),
      // One who is refused for the role is known by name all the same, to the log and to the audit.
      (caller) => request.contextValues.set(callerKey, caller),
    );
    return await next(request);
  };
}
