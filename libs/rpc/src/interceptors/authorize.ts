import type { Interceptor } from "@connectrpc/connect";
import { callerKey, endingOf, identityKey } from "../calls/call-context.ts";
import { beforeAbort } from "../calls/call-end.ts";
import { checkRole, needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";
import type { StreamCallers } from "../limits/stream-callers.ts";

/**
 * Admit only callers that the method's policy row allows. Callers are identified before their requests are decoded.
 */
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
      // Store the caller before checking its role, so that the log and the audit log name the caller even if the
      // role is too low.
      request.contextValues.set(callerKey, identity.caller);
      checkRole(identity.caller, needs);
    }
    return await next(request);
  };
}

/**
 * End streams whose caller has lost its access: a stream ends when the token that opened it expires or is revoked.
 */
export function endWithCaller(policies: PolicyTable, streams: StreamCallers): Interceptor {
  return (next) => (request) => {
    const authorization = request.header.get("authorization");
    const caller = request.contextValues.get(callerKey);
    const needs = policies[methodName(request.method)]?.caller ?? "anyone";
    const isChecked = request.stream && caller.kind !== "anonymous" && needsRole(needs);
    if (!isChecked || authorization === null) return next(request);
    const leave = streams.join({ authorization, caller, needs, ending: endingOf(request.contextValues) });
    // Leave on an abort, because the signal aborts when a call ends for any reason, including success.
    request.signal.addEventListener("abort", leave, { once: true });
    if (request.signal.aborted) leave();
    return next(request);
  };
}
