import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";

/** One of the outputs of an execution, numbered as in LogRequest and LogPiece. */
export type OutputNumber = 1 | 2;

/** A piece of output, as the keeper stores it. */
export interface OutputPiece {
  /**
   * The position of the piece, in bytes since the start of the execution. It is later than requested if older output
   * was rotated away.
   */
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** Whether this is the last piece: everything was read, and the execution has ended. */
  readonly isEnd: boolean;
  /** Whether the beginning of the requested output is no longer kept. */
  readonly isCut: boolean;
  /** When the output was written, if that was requested and is known. */
  readonly times: readonly OutputTime[];
}

/** Reads output. */
export interface OutputSource {
  /**
   * Read a piece. Null if no output of the execution is kept.
   *
   * @param from an offset, the last N bytes, or the wall time to start at.
   */
  read(
    executionId: string,
    output: OutputNumber,
    from: { readonly offset: bigint } | { readonly tailBytes: bigint } | { readonly sinceMs: bigint },
    wanted: { readonly limitBytes: number; readonly times?: boolean },
  ): Promise<OutputPiece | null>;
}
