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
  /** What the request named; may be empty. */
  readonly target: string;
  /** The reason that the caller gave; may be empty. */
  readonly reason: string;
  /** The ErrorReason. */
  readonly outcome: string;
}

/** Takes note of a refusal. It neither throws nor makes the caller wait. */
export type RecordRefusal = (refusal: RefusedCall) => void;

type Request = Parameters<Parameters<Interceptor>[0]>[0];

/**
 * Tell of every mutation that was refused to an authenticated caller; count what is refused to strangers,
 * who can cause any number of refusals.
 */
export function recordRefusals(policies: PolicyTable, metrics: MetricsRegistry, record: RecordRefusal): Interceptor {
  const strangers = strangersRefused(metrics);
  return (next) => async (request) => {
    try {
      return await next(request);
    } catch (error) {
      const { code, reason } = describeError(mapError(error));
      const isStranger = request.contextValues.get(callerKey).kind === "anonymous";
      if (isStranger && isAboutIdentity(code, reason)) {
        strangers.inc({ method: methodName(request.method), reason: reason ?? "" });
      }
      // While the record is away there is nowhere to write to.
      if (!isStranger && reason !== undefined && reason !== "STORE_UNAVAILABLE") {
        const refusal = refusalOf(policies, request, reason);
        if (refusal !== null) record(refusal);
      }
      throw error;
    }
  };
}

/** Counts what strangers are refused. */
export function strangersRefused(metrics: MetricsRegistry): LabelledCounter<"method" | "reason"> {
  return counter(metrics, {
    name: "rollcall_strangers_refused_total",
    help: "Calls refused to callers who could not prove who they are, by method and reason.",
    labelNames: ["method", "reason"],
  });
}

function isAboutIdentity(code: Code, reason: string | undefined): boolean {
  return code === Code.Unauthenticated || reason === "TOO_MANY_FAILURES";
}

/** Null when the call was no mutation. */
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
