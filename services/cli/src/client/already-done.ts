import { ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { reasonIn, refusalHint } from "../hints.ts";
import { printable } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** Refusals of what is already as the caller wants it. */
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

/** The same of `job stop`: other verbs cannot do what they are asked. */
export const JOB_IS_STOPPED: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.JOB_STOPPED,
  ErrorReason.JOB_ENDED,
  ErrorReason.EXECUTION_ENDED,
]);

/** The same of `job revert`. */
export const JOB_HAS_SPECIFICATION: ReadonlySet<ErrorReason> = new Set([ErrorReason.JOB_VERSION_IS_NEWEST]);

/** Whether a refusal only says that there is nothing to change. */
export function isAlreadyDone(reason: ErrorReason): boolean {
  return ALREADY_DONE.has(reason);
}

/**
 * Make a call that changes something. Where there is nothing to change, say so on standard error and return null; with
 * `strict` that is a failure like any other. `alsoDone` are refusals that say so of this change alone.
 */
export async function alreadyDone<T>(
  { err }: Pick<Shell, "err">,
  strict: boolean,
  call: () => Promise<T>,
  alsoDone: ReadonlySet<ErrorReason> = new Set(),
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
    err.write(`nothing to change: ${printable(rawMessage)}\n${hint === null ? "" : `hint: ${printable(hint)}\n`}`);
    return null;
  }
}
