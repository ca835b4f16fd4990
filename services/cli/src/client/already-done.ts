import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { reasonIn, refusalHint } from "../hints.ts";
import { type Change, type ChangeFormat, okLine } from "../output/change.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** Refusals that mean that the object is already in the requested state, for any verb. */
const ALREADY_DONE: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.NODE_ALREADY_APPROVED,
  ErrorReason.NODE_ALREADY_REJECTED,
  ErrorReason.NODE_ALREADY_CORDONED,
  ErrorReason.NODE_NOT_CORDONED,
  ErrorReason.NODE_NOT_DRAINING,
  ErrorReason.NODE_ALREADY_MARKED,
  ErrorReason.NODE_NOT_MARKED,
  ErrorReason.NODE_ALREADY_BANNED,
  ErrorReason.NODE_NOT_BANNED,
  ErrorReason.NODE_HARDWARE_UNCHANGED,
  ErrorReason.KEY_ROTATION_ALREADY_REQUIRED,
  ErrorReason.ACCESS_TOKEN_ALREADY_REVOKED,
  ErrorReason.JOIN_TOKEN_ALREADY_REVOKED,
  ErrorReason.BRAKE_ALREADY_FROZEN,
  ErrorReason.BRAKE_NOT_FROZEN,
]);

/**
 * Refusals that mean that there is nothing to change, but only for `job stop`. For other verbs they are failures.
 */
export const JOB_IS_STOPPED: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.JOB_STOPPED,
  ErrorReason.JOB_ENDED,
  ErrorReason.EXECUTION_ENDED,
]);

const NONE: ReadonlySet<ErrorReason> = new Set();

/** Refusals that mean that there is nothing to change, but only for `job revert`. */
export const JOB_HAS_SPECIFICATION: ReadonlySet<ErrorReason> = new Set([ErrorReason.JOB_VERSION_IS_NEWEST]);

/** Whether a refusal only means that there is nothing to change. */
export function isAlreadyDone(reason: ErrorReason): boolean {
  return ALREADY_DONE.has(reason);
}

/** How to report that there is nothing to change. */
export interface AlreadyDoneOptions {
  /** Fail, as with any other refusal. */
  readonly strict: boolean;
  readonly format: ChangeFormat;
  /** What to print, such as `web-1` and `was already cordoned`. By default, the server's message. */
  readonly words?: Change;
  /** Refusals that mean "nothing to change" for this call only. */
  readonly alsoDone?: ReadonlySet<ErrorReason>;
}

/**
 * Make a call that changes something. When there is nothing to change, report that and return null: as a line that
 * starts with Ok, or on standard error if standard output is for scripts.
 */
export async function alreadyDone<T>(
  { out, err }: Pick<Shell, "out" | "err">,
  { strict, format, words, alsoDone = NONE }: AlreadyDoneOptions,
  call: () => Promise<T>,
): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    const { rawMessage } = ConnectError.from(error);
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    const reason = reasonIn(error);
    const isDone = isAlreadyDone(reason) || alsoDone.has(reason);
    if (strict || !isDone) throw error;
    const hint = alsoDone.has(reason) ? null : refusalHint(reason, info?.metadata ?? {});
    if (format !== "table") err.write(`nothing to change: ${printable(rawMessage)}\n`);
    else out.write(words === undefined ? `Ok: ${printable(rawMessage)}\n` : okLine(words.object, words.result));
    if (hint !== null) err.write(`hint: ${printable(hint)}\n`);
    return null;
  }
}
