import type { Interceptor } from "@connectrpc/connect";
import { callerKey, endingOf, identityKey } from "../calls/call-context.ts";
import { checkRole, needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import type { StreamCallers } from "../limits/stream-callers.ts";
import { beforeAbort } from "./call-end.ts";

/** Admit only callers that the method's policy row allows. They were identified before the request was decoded. */
export function authorize(policies: PolicyTable): Interceptor {
  return (next) => async (request) => {
    const method = methodName(request.method);
    const policy = policies[method];
    if (policy === undefined) throw new Error(`${method} has no policy row`);
    const { caller: needs } = policy;
    if (needsRole(needs)) {
      const identifying = request.contextValues.get(identityKey);
      if (identifying === null) throw new Error(`the caller of ${method} was not identified`);
      const identity = await beforeAbort(identifying, request.signal);
      if (!identity.ok) throw identity.error;
      // A caller that lacks the role is still named in the log and in the audit.
      request.contextValues.set(callerKey, identity.caller);
      checkRole(identity.caller, needs);
    }
    return await next(request);
  };
}

/**
 * End streams whose caller may not call any more: a token that was revoked or has expired opened them, and does not
 * keep them open.
 */
export function endWithCaller(policies: PolicyTable, streams: StreamCallers): Interceptor {
  return (next) => (request) => {
    const authorization = request.header.get("authorization");
    const caller = request.contextValues.get(callerKey);
    const needs = policies[methodName(request.method)]?.caller ?? "anyone";
    const isChecked = request.stream && caller.kind !== "anonymous" && needsRole(needs);
    if (!isChecked || authorization === null) return next(request);
    const leave = streams.join({ authorization, caller, needs, ending: endingOf(request.contextValues) });
    // It is aborted at every end of a call, not only when that fails.
    request.signal.addEventListener("abort", leave, { once: true });
    if (request.signal.aborted) leave();
    return next(request);
  };
}
