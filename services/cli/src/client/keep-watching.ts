import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { systemClock } from "@rollcall/process";
import { reasonIn } from "../hints.ts";
import { formatExactDuration } from "../output/units.ts";
import type { Shell, StreamLimits } from "../shell.ts";
import type { ServiceName } from "./addresses.ts";
import type { ControlPlane } from "./control-plane.ts";

/** Opens a stream. */
export type OpenStream<Message> = (call: {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}) => AsyncIterable<Message>;

/** A watch that reconnects when its stream breaks. */
export interface Watching<Message> {
  readonly control: Pick<ControlPlane, "attempt" | "explain">;
  readonly at: ServiceName;
  /** The action for error messages, for example "watch job web". */
  readonly what: string;
  readonly shell: Pick<Shell, "err" | "interrupted" | "streamLimits">;
  /**
   * Whether to retry a few times when the stream cannot be opened for a transient reason. Default: fail immediately.
   */
  readonly isPatient?: boolean;
  /** Whether earlier calls have succeeded. The first stream is then opened again if it breaks, like any later one. */
  readonly hasBegun?: boolean;
  /**
   * Open the stream. After a break, the new stream either starts with messages that repeat the state, or resumes where
   * the previous stream ended.
   */
  readonly open: OpenStream<Message>;
  /** Called with the error of each break, before the stream is opened again. */
  readonly onBreak?: (error: unknown) => void;
}

/** Codes of transient failures: the same call may succeed later, unless its reason is in FINAL. */
const PASSING: ReadonlySet<Code> = new Set([
  ...[Code.Unavailable, Code.Aborted, Code.Canceled, Code.DeadlineExceeded, Code.ResourceExhausted],
  ...[Code.Unknown, Code.Internal],
]);

/** Reasons with which the same message would be refused again. */
const FINAL: ReadonlySet<ErrorReason> = new Set([ErrorReason.MESSAGE_TOO_LARGE, ErrorReason.MALFORMED_MESSAGE]);

/**
 * The default limits. Each stream of the API carries a message at least every 15 s, so 45 s of silence mean that the
 * path or the server no longer works. docs/reference/exit-codes.md promises both times.
 */
const LIMITS: StreamLimits = { silenceMs: 45_000, giveUpMs: 300_000, firstPauseMs: 500 };
const LONGEST_PAUSE_MS = 5_000;
/**
 * Maximum number of attempts to open the stream for the first time. They take about eight seconds, long enough for a
 * restarted agent to reconnect.
 */
const MOST_FIRST_ATTEMPTS = 5;

/** The limits that apply in a shell. */
export function streamLimitsOf({ streamLimits }: Pick<Shell, "streamLimits">): StreamLimits {
  return streamLimits ?? LIMITS;
}

/**
 * Yield the messages of a stream of the API. A stream that breaks or falls silent after its first message is opened
 * again, and each break is reported once. Ends when the stream ends. Throws Failure when the stream cannot be opened,
 * or yields nothing for too long.
 */
export async function* keepWatching<Message>(watching: Watching<Message>): AsyncGenerator<Message> {
  const { control, at, what, shell, open, onBreak, isPatient = false } = watching;
  const { giveUpMs, firstPauseMs } = streamLimitsOf(shell);
  let { hasBegun = false } = watching;
  let attempts = 0;
  // The time of the first break since the last message. The limit counts from this time, because a stopped client also
  // receives nothing.
  let brokenAtMs = 0;
  for (;;) {
    try {
      for await (const message of untilSilent(shell, open)) {
        hasBegun = true;
        attempts = 0;
        yield message;
      }
      return;
    } catch (error) {
      shell.interrupted.throwIfAborted();
      attempts += 1;
      if (attempts === 1) brokenAtMs = systemClock.nowMs();
      const isPassing = PASSING.has(ConnectError.from(error).code) && !FINAL.has(reasonIn(error));
      const isLate = hasBegun
        ? systemClock.nowMs() - brokenAtMs >= giveUpMs
        : attempts > (isPatient ? MOST_FIRST_ATTEMPTS : 0);
      if (isLate || !isPassing) await control.attempt(at, what, () => Promise.reject(error));
      if (attempts === 1) {
        const happened = hasBegun ? "connection lost" : `cannot ${what} yet`;
        shell.err.write(`${happened}: ${await control.explain(at, error)}; trying again\n`);
      }
      onBreak?.(error);
    }
    const pauseMs = Math.min(LONGEST_PAUSE_MS, firstPauseMs * 2 ** (attempts - 1));
    await sleep(pauseMs, undefined, { signal: shell.interrupted });
  }
}

/** Yield the messages of one stream. Fails with the code Unavailable when the stream receives nothing for too long. */
export async function* untilSilent<Message>(
  shell: Pick<Shell, "streamLimits" | "interrupted">,
  open: OpenStream<Message>,
): AsyncGenerator<Message> {
  const { silenceMs } = streamLimitsOf(shell);
  const leaving = new AbortController();
  const silent = new ConnectError(`nothing was received for ${formatExactDuration(silenceMs)}`, Code.Unavailable);
  const signal = AbortSignal.any([leaving.signal, shell.interrupted]);
  const messages = open({ timeoutMs: 0, signal })[Symbol.asyncIterator]();
  let timer: NodeJS.Timeout | undefined;
  try {
    for (;;) {
      // Run the timer only while a message is awaited, because the caller can take any time to handle a message.
      timer = setTimeout(() => leaving.abort(silent), silenceMs);
      const next = await messages.next();
      clearTimeout(timer);
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    throw leaving.signal.aborted ? silent : error;
  } finally {
    clearTimeout(timer);
    // Abort the stream, because an abandoned stream continues and keeps the process alive. return() alone would wait
    // for the next message.
    leaving.abort();
    messages.return?.().catch(() => {});
  }
}
