import type { LogRequest } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { Clock } from "@rollcall/process";

/** One of the outputs of an execution, as LogRequest and LogPiece number them. */
export type OutputNumber = 1 | 2;

/** A piece of output as the keeper has it. */
export interface OutputPiece {
  /** Where it begins, in bytes since the execution started: later than asked for where the output was rotated away. */
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** Whether nothing follows: it is read to its end, and the execution has ended. */
  readonly isEnd: boolean;
}

/** Reads output. */
export interface OutputSource {
  /**
   * Read a piece. Null when no output of the execution is kept.
   *
   * @param from an offset, or the last so many bytes.
   */
  read(
    executionId: string,
    output: OutputNumber,
    from: { readonly offset: bigint } | { readonly tailBytes: bigint },
    limitBytes: number,
  ): Promise<OutputPiece | null>;
}

/** A call of HealthService.ServeLogs. */
export interface OutputCall {
  /** Send a piece. Resolves once the server takes more; false when the call has ended. */
  send(piece: {
    readonly token?: Uint8Array;
    readonly stream?: OutputNumber;
    readonly offset?: bigint;
    readonly data?: Uint8Array;
    readonly failure?: string;
  }): Promise<boolean>;
  /** Everything has been sent. */
  end(): void;
}

/** One frame of the call, which takes 64 KiB of data. */
const PIECE_BYTES = 65_536;
/** How long to wait for more output. */
const LOOK_EVERY_MS = 250;

interface Cursor {
  readonly output: OutputNumber;
  from: { readonly offset: bigint } | { readonly tailBytes: bigint };
  isEnd: boolean;
}

/**
 * Send the output that a LogRequest asks for, until its end, or with `follow` until the execution has ended or the
 * server ends the call. Of both outputs, a piece of each is sent in turn.
 */
export async function sendOutput(
  request: LogRequest,
  source: OutputSource,
  call: OutputCall,
  clock: Pick<Clock, "sleep">,
  signal: AbortSignal,
): Promise<void> {
  const { token, executionId, stream, offset, tailBytes, follow } = request;
  const outputs: readonly OutputNumber[] = stream === 1 || stream === 2 ? [stream] : [1, 2];
  const cursors = outputs.map((output): Cursor => {
    return { output, from: tailBytes > 0n ? { tailBytes } : { offset }, isEnd: false };
  });
  if (!(await call.send({ token }))) return;
  try {
    while (cursors.some(({ isEnd }) => !isEnd)) {
      let hasSent = false;
      for (const cursor of cursors) {
        if (cursor.isEnd) continue;
        const piece = await source.read(executionId, cursor.output, cursor.from, PIECE_BYTES);
        if (piece === null) {
          await call.send({ failure: "LOG_NOT_FOUND" });
          return;
        }
        const { data } = piece;
        cursor.from = { offset: piece.offset + BigInt(data.byteLength) };
        cursor.isEnd = piece.isEnd || (!follow && data.byteLength === 0);
        if (data.byteLength === 0) continue;
        hasSent = true;
        if (!(await call.send({ stream: cursor.output, offset: piece.offset, data }))) return;
      }
      if (!hasSent && cursors.some(({ isEnd }) => !isEnd)) await clock.sleep(LOOK_EVERY_MS, signal);
    }
  } catch (error) {
    if (!signal.aborted) await call.send({ failure: "LOG_UNAVAILABLE" });
    throw error;
  } finally {
    call.end();
  }
}
