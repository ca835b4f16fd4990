import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Sink } from "../shell.ts";

/** A piece of one output of an execution. */
export interface WrittenPiece {
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** When the data was written, in order. Bytes before the first time have no known time. */
  readonly times: readonly OutputTime[];
}

/** How the lines of an output currently start. */
export interface LineFormat {
  /** The prefix of each line; null to write output unchanged. */
  readonly prefix: string | null;
  /** Whether each line starts with its time. */
  readonly hasTime: boolean;
}

const LINE_BREAK = Buffer.from("\n");
/** Maximum size of a line that is written whole. A longer line is written in parts. */
const MOST_LINE_BYTES = 65_536;
/** The length of a formatted time. The word "unknown" is padded to this length. */
const TIME_LETTERS = 24;

/** A sink that several outputs share. An unfinished line of one output is ended before another output writes. */
export class SharedSink {
  readonly #sink: Sink;
  /** The output whose last line is unfinished. */
  #open: OutputWriter | null = null;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Whether this output wrote last and left its line unfinished. */
  isOpenFor(writer: OutputWriter): boolean {
    return this.#open === writer;
  }

  write(writer: OutputWriter, data: Uint8Array): void {
    if (data.byteLength === 0) return;
    if (this.#open !== null && this.#open !== writer) this.#sink.write(LINE_BREAK);
    this.#sink.write(data);
    this.#open = data.at(-1) === LINE_BREAK[0] ? null : writer;
  }

  /** Write a line that belongs to no output. */
  note(line: string): void {
    this.#sink.write(`${this.#open === null ? "" : "\n"}${line}\n`);
    this.#open = null;
  }

  taken(): Promise<void> {
    return this.#sink.taken();
  }
}

/**
 * Writes one output of an execution. Lines with a prefix or a time are written whole, so that those of several
 * executions do not mix. Without either, bytes are written unchanged and immediately.
 */
export class OutputWriter {
  readonly #sink: SharedSink;
  readonly #look: () => LineFormat;
  /** The start of an unfinished line. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #head = "";

  constructor(sink: SharedSink, look: () => LineFormat) {
    this.#sink = sink;
    this.#look = look;
  }

  write({ offset, data, times }: WrittenPiece): void {
    const look = this.#look();
    if (look.prefix === null && !look.hasTime) {
      this.#flush();
      this.#sink.write(this, data);
      return;
    }
    const lines: Uint8Array[] = [];
    for (let at = 0; at < data.byteLength; ) {
      const found = data.indexOf(LINE_BREAK[0] ?? 0, at);
      const end = found === -1 ? data.byteLength : found + 1;
      if (this.#pendingBytes === 0) this.#head = headOf(look, timeAt(times, offset + BigInt(at)));
      this.#pending.push(data.subarray(at, end));
      this.#pendingBytes += end - at;
      if (found !== -1 || this.#pendingBytes >= MOST_LINE_BYTES) lines.push(this.#takeLine(lines.length === 0));
      at = end;
    }
    this.#sink.write(this, Buffer.concat(lines));
  }

  taken(): Promise<void> {
    return this.#sink.taken();
  }

  /** End the output, with or without a final line break. */
  end(): void {
    this.#flush();
    // Terminate an unfinished prefixed line, because other lines follow. Without prefixes the output stays
    // exactly as it was written.
    if (this.#look().prefix !== null && this.#sink.isOpenFor(this)) this.#sink.write(this, LINE_BREAK);
  }

  #flush(): void {
    if (this.#pendingBytes > 0) this.#sink.write(this, this.#takeLine(true));
  }

  /** @param isNext whether the line directly follows what this output wrote last. */
  #takeLine(isNext: boolean): Uint8Array {
    // Add no prefix if the last line on the screen is unfinished and belongs to this output, because this text
    // continues that line.
    const goesOn = isNext && this.#sink.isOpenFor(this);
    const line = Buffer.concat([Buffer.from(goesOn ? "" : this.#head), ...this.#pending]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return line;
  }
}

function headOf({ prefix, hasTime }: LineFormat, atMs: number | null): string {
  const time = atMs === null ? "unknown" : new Date(atMs).toISOString();
  return `${prefix ?? ""}${hasTime ? `${time.padEnd(TIME_LETTERS)} ` : ""}`;
}

/** When the byte at an offset was written; null if unknown. */
function timeAt(times: readonly OutputTime[], offset: bigint): number | null {
  const time = times.findLast((one) => one.offset <= offset)?.time;
  return time === undefined ? null : timestampMs(time);
}
