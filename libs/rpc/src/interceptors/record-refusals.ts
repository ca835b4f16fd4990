import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, type Interceptor } from "@connectrpc/connect";
import { describeError, mapError } from "@rollcall/errors";
import { counter, type LabelledCounter, type MetricsRegistry } from "@rollcall/process";
import { type AuditedCall, auditedCall, auditTarget } from "../calls/audited-call.ts";
import { callerKey } from "../calls/call-context.ts";
import { needsRole } from "../calls/find-caller.ts";
import { methodName, type PolicyTable } from "../calls/policy.ts";

/** A mutation that was refused to an authenticated caller. */
export interface RefusedCall extends AuditedCall {
  /** The object that the request names; may be empty. */
  readonly target: string;
  /** The reason that the caller gave; may be empty. */
  readonly reason: string;
  /** The reason of the error. */
  readonly outcome: string;
}

/** Records a refusal. It neither throws nor makes the caller wait. */
export type RecordRefusal = (refusal: RefusedCall) => void;

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/**
 * Record every mutation that is refused to an authenticated caller. Refusals of anonymous clients are only counted,
 * because anonymous clients can cause any number of them.
 */
export function recordRefusals(policies: PolicyTable, metrics: MetricsRegistry, record: RecordRefusal): Interceptor {
  const anonymousClients = anonymousRefused(metrics);
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      const { code, reason } = describeError(mapError(error));
      const isAnonymous = request.contextValues.get(callerKey).kind === "anonymous";
      if (isAnonymous && isAboutIdentity(code, reason)) {
        anonymousClients.inc({ method: methodName(request.method), reason: reason ?? "" });
      }
      // Leave out STORE_UNAVAILABLE: the store cannot save the refusal while it is unavailable.
      if (!isAnonymous && reason !== undefined && reason !== "STORE_UNAVAILABLE") {
        const refusal = refusalOf(policies, request, reason);
        if (refusal !== null) record(refusal);
      }
      throw error;
    }
  };
}

/** Create the counter of refusals of anonymous clients. */
export function anonymousRefused(metrics: MetricsRegistry): LabelledCounter<"method" | "reason"> {
  return counter(metrics, {
    name: "rollcall_anonymous_refused_total",
    help: "Calls refused to unauthenticated callers, by method and reason.",
    labelNames: ["method", "reason"],
  });
}

function isAboutIdentity(code: Code, reason: string | undefined): boolean {
  return code === Code.Unauthenticated || reason === "TOO_MANY_FAILURES";
}

/** Describe a refused mutation; null if the call is not a mutation. */
function refusalOf(policies: PolicyTable, request: Request, outcome: string): RefusedCall | null {
  const { method, message, contextValues: values } = request;
  if (request.stream || method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS) {
    return null;
  }
  if (!needsRole(policies[methodName(method)]?.caller ?? "anyone")) return null;
  const fields = message as { readonly reason?: unknown; readonly validateOnly?: unknown };
  if (fields.validateOnly === true) return null;
  return {
    ...auditedCall({ values }, method),
    target: auditTarget(request.message as Parameters<typeof auditTarget>[0]),
    reason: typeof fields.reason === "string" ? fields.reason : "",
    outcome,
  };
}
