import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";

/** One of the outputs of an execution, as LogRequest and LogPiece number them. */
export type OutputNumber = 1 | 2;

/** A piece of output as the keeper has it. */
export interface OutputPiece {
  /** Where it begins, in bytes since the execution started: later than asked for where the output was rotated away. */
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** Whether nothing follows: it is read to its end, and the execution has ended. */
  readonly isEnd: boolean;
  /** Whether the requested output starts earlier and is no longer kept. */
  readonly isCut: boolean;
  /** When it was written, where that was asked for and is known. */
  readonly times: readonly OutputTime[];
}

/** Reads output. */
export interface OutputSource {
  /**
   * Read a piece. Null when no output of the execution is kept.
   *
   * @param from an offset, the last so many bytes, or what was written at a wall time or later.
   */
  read(
    executionId: string,
    output: OutputNumber,
    from: { readonly offset: bigint } | { readonly tailBytes: bigint } | { readonly sinceMs: bigint },
    wanted: { readonly limitBytes: number; readonly times?: boolean },
  ): Promise<OutputPiece | null>;
}
