import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { reasonIn } from "../hints.ts";
import type { Shell } from "../shell.ts";
import type { ServiceName } from "./addresses.ts";
import type { ControlPlane } from "./control-plane.ts";

/** A watch that begins again after a break. */
export interface Watching<Message> {
  readonly control: ControlPlane;
  readonly at: ServiceName;
  /** What fails when it fails, for example "watch job web". */
  readonly what: string;
  readonly shell: Pick<Shell, "err" | "interrupted">;
  /** Whether to try a few more times when it cannot begin, for a reason that can pass. Default: it fails. */
  readonly isPatient?: boolean;
  /** Open the stream. Its first messages say again what is true then. */
  open(call: { readonly timeoutMs: number; readonly signal: AbortSignal }): AsyncIterable<Message>;
  /** Wait before the next attempt; it rejects when the user ends it. */
  pause(ms: number, signal: AbortSignal): Promise<unknown>;
}

/** With these codes the same call may succeed later, unless it has one of FINAL. */
const PASSING: ReadonlySet<Code> = new Set([
  ...[Code.Unavailable, Code.Aborted, Code.Canceled, Code.DeadlineExceeded, Code.ResourceExhausted],
  ...[Code.Unknown, Code.Internal],
]);

/** The same message is refused again. */
const FINAL: ReadonlySet<ErrorReason> = new Set([ErrorReason.MESSAGE_TOO_LARGE, ErrorReason.MALFORMED_MESSAGE]);

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5_000;
/** Attempts in a row that bring nothing: about five minutes. */
const MOST_ATTEMPTS = 60;
/** Attempts to begin: about eight seconds, in which an agent that was restarted is connected again. */
const MOST_FIRST_ATTEMPTS = 5;

/**
 * The messages of a stream of the API. One that breaks after it began is opened again, and the user is told once for
 * each break. It ends where the stream does. Throws Failure when it cannot begin, or brings nothing for too long.
 */
export async function* keepWatching<Message>(watching: Watching<Message>): AsyncGenerator<Message> {
  const { control, at, what, shell, open, pause, isPatient = false } = watching;
  let hasBegun = false;
  let attempts = 0;
  for (;;) {
    // A stream that is left goes on, and keeps the process alive, unless it is ended.
    const leaving = new AbortController();
    try {
      for await (const message of open({ timeoutMs: 0, signal: leaving.signal })) {
        hasBegun = true;
        attempts = 0;
        yield message;
      }
      return;
    } catch (error) {
      shell.interrupted.throwIfAborted();
      attempts += 1;
      const isPassing = PASSING.has(ConnectError.from(error).code) && !FINAL.has(reasonIn(error));
      const most = hasBegun ? MOST_ATTEMPTS : isPatient ? MOST_FIRST_ATTEMPTS : 0;
      const isOver = attempts > most || !isPassing;
      if (isOver) await control.attempt(at, what, () => Promise.reject(error));
      if (attempts === 1) {
        const happened = hasBegun ? "connection lost" : `cannot ${what} yet`;
        shell.err.write(`${happened}: ${await control.explain(at, error)}; trying again\n`);
      }
    } finally {
      leaving.abort();
    }
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempts - 1)), shell.interrupted);
  }
}
