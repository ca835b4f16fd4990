import { type GoAway, GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { describeError } from "@rollcall/errors";
import { errorFromGrpc } from "@rollcall/rpc/client";
import { toMs } from "./hello.ts";

/** How a stream, or the attempt at one, came to its end. */
export type SessionEnd =
  /** Nothing of ours answered there. */
  | { readonly kind: "unreachable"; readonly message: string }
  /** The path went dead: no Ack for too long. */
  | { readonly kind: "silent" }
  /** The server ended it, or refused it. */
  | {
      readonly kind: "refused";
      /** A name of the ErrorReason enum; absent when the server gave none. */
      readonly reason: string | undefined;
      readonly message: string;
      /** The least time before coming back; absent when the server says nothing. */
      readonly retryAfterMs: number | undefined;
      readonly action: "REGISTER" | "STOP" | undefined;
      /** The history of the record that has cast the node out; absent when none has, or none is told. */
      readonly castOutBy?: string | undefined;
    }
  /** This side left. */
  | { readonly kind: "left" };

/** Operators, or the node itself, have ended its part in the fleet. */
const CAST_OUT: ReadonlySet<string> = new Set(["NODE_REJECTED", "NODE_BANNED", "NODE_DELETED"]);

/** Whether the node was rejected, banned or deleted. */
export function isCastOut(end: SessionEnd): end is SessionEnd & { readonly kind: "refused" } {
  return end.kind === "refused" && end.reason !== undefined && CAST_OUT.has(end.reason);
}

/** Read a GoAway. */
export function endOfGoAway(goAway: GoAway): SessionEnd {
  return {
    kind: "refused",
    reason: reasonName(goAway),
    message: goAway.message,
    retryAfterMs: goAway.retryAfter && toMs(goAway.retryAfter),
    action: actionOf(goAway),
    castOutBy: goAway.logId || undefined,
  };
}

/**
 * Read the status with which a stream ended. An error without a reason of ours, on a stream on which nothing was
 * heard, comes from no health replica: the address is wrong, or nothing listens there.
 */
export function endOfStatus(error: unknown, reached: boolean): SessionEnd {
  if (error === undefined) {
    return reached
      ? refusedWithout("the server closed the stream")
      : { kind: "unreachable", message: "the stream was closed before its first frame" };
  }
  const { reason, message, retryAfterMs } = describeError(errorFromGrpc(error));
  if (reason === undefined) {
    return reached ? refusedWithout(message) : { kind: "unreachable", message };
  }
  return { kind: "refused", reason, message, retryAfterMs, action: undefined };
}

function refusedWithout(message: string): SessionEnd {
  return {
    kind: "refused",
    reason: undefined,
    message,
    retryAfterMs: undefined,
    action: undefined,
  };
}

function reasonName({ reason }: GoAway): string | undefined {
  const name = ErrorReasonSchema.value[reason]?.name.replace(/^ERROR_REASON_/, "");
  return name === "UNSPECIFIED" ? undefined : name;
}

function actionOf({ action }: GoAway): "REGISTER" | "STOP" | undefined {
  switch (action) {
    case GoAwayAction.REGISTER:
      return "REGISTER";
    case GoAwayAction.STOP:
      return "STOP";
    default:
      return undefined;
  }
}
