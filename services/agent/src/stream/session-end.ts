import { type GoAway, GoAwayAction } from "@rollcall/api/rollcall/health/v1/health_pb";
import { ErrorReasonSchema } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { describeError } from "@rollcall/errors";
import { errorFromGrpc } from "@rollcall/rpc/client";
import { toMs } from "./hello.ts";

/** How a stream, or the attempt to open one, ended. */
export type SessionEnd =
  /** No health replica responded. */
  | { readonly kind: "unreachable"; readonly message: string }
  /** The connection is dead, because no Ack arrived for too long. */
  | { readonly kind: "silent" }
  /** The server ended or refused the stream. */
  | {
      readonly kind: "refused";
      /** A name of the ErrorReason enum; absent when the server gave none. */
      readonly reason: string | undefined;
      readonly message: string;
      /** The minimum time before reconnecting; absent if the server does not give one. */
      readonly retryAfterMs: number | undefined;
      readonly action: "REGISTER" | "STOP" | undefined;
      /**
       * The store history that rejected, banned or deleted the node. Absent if the stream ended for another
       * reason, or if the server does not report the history.
       */
      readonly castOutBy?: string | undefined;
    }
  /** The agent itself ended the stream. */
  | { readonly kind: "left" };

/** The reasons why a node is no longer part of the fleet: an operator, or the node itself, has removed it. */
const CAST_OUT: ReadonlySet<string> = new Set(["NODE_REJECTED", "NODE_BANNED", "NODE_DELETED"]);

/** Whether the node was rejected, banned or deleted. */
export function isCastOut(end: SessionEnd): end is SessionEnd & { readonly kind: "refused" } {
  return end.kind === "refused" && end.reason !== undefined && CAST_OUT.has(end.reason);
}

/** Convert a GoAway to the end of a session. */
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
 * Interpret the final status of a stream. If the stream received nothing and the error has none of our
 * reasons, no health replica responded, because the address is wrong or nothing listens there.
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
