import { Code } from "@connectrpc/connect";
import type { Refusal } from "@rollcall/domain";
import { CODE_OF_REASON, type ErrorReasonName, refuse } from "@rollcall/runtime";

/** The error of a call that was decided against; `node` is what a precondition failed on. */
export function refusalError(refusal: Refusal<ErrorReasonName>, node: string): Error {
  const { reason, message, metadata } = refusal;
  const isPrecondition = CODE_OF_REASON[reason] === Code.FailedPrecondition;
  return refuse(reason, message, { metadata, ...(isPrecondition ? { subject: node } : {}) });
}
