import { Code, type ConnectError } from "@connectrpc/connect";
import { CODE_OF_REASON, type ErrorReasonName } from "./error-table.ts";
import { type FieldViolation, type RefusalDetails, refuse } from "./errors.ts";

/** Why a call was decided against. The domain's Refusal is one. */
export interface DecidedRefusal {
  readonly reason: ErrorReasonName;
  readonly message: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The error of a call that was decided against; `subject`, for example a node id, is what a precondition failed on. */
export function refusalError(
  refusal: DecidedRefusal,
  subject: string,
  hint: Pick<RefusalDetails, "retryAfterMs"> = {},
): ConnectError {
  const { reason, message, metadata } = refusal;
  const isPrecondition = CODE_OF_REASON[reason] === Code.FailedPrecondition;
  return refuse(reason, message, {
    metadata,
    ...(isPrecondition ? { subject } : {}),
    ...hint,
  });
}

/** The error of a request with fields that are not as they should be: its message names every violation. */
export function refuseFields(reason: ErrorReasonName, violations: readonly FieldViolation[]): ConnectError {
  const message = violations.map(({ field, description }) => `${field}: ${description}`).join("; ");
  return refuse(reason, message, { violations });
}
