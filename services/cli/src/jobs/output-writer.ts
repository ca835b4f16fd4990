import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { OutputTime } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { Sink } from "../shell.ts";

/** A piece of one output of an execution. */
export interface WrittenPiece {
  readonly offset: bigint;
  readonly data: Uint8Array;
  /** When it was written, in order. Bytes before the first one have no known time. */
  readonly times: readonly OutputTime[];
}

/** How the lines of an output begin, at this moment. */
export interface LineLook {
  /** Before each line; null where output is written as it is. */
  readonly prefix: string | null;
  /** Whether each line begins with its time. */
  readonly hasTime: boolean;
}

const LINE_BREAK = Buffer.from("\n");
/** A longer line is written in parts. */
const MOST_LINE_BYTES = 65_536;
/** A time has this many letters: lines of unknown times line up. */
const TIME_LETTERS = 24;

/** A sink that several outputs share. A line that one of them started is ended before another one writes. */
export class SharedSink {
  readonly #sink: Sink;
  /** The output whose line is not ended. */
  #open: OutputWriter | null = null;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Whether this output wrote last, and did not end its line. */
  isOpenFor(writer: OutputWriter): boolean {
    return this.#open === writer;
  }

  write(writer: OutputWriter, data: Uint8Array): void {
    if (data.byteLength === 0) return;
    if (this.#open !== null && this.#open !== writer) this.#sink.write(LINE_BREAK);
    this.#sink.write(data);
    this.#open = data.at(-1) === LINE_BREAK[0] ? null : writer;
  }

  /** Write a line of our own. */
  note(line: string): void {
    this.#sink.write(`${this.#open === null ? "" : "\n"}${line}\n`);
    this.#open = null;
  }

  taken(): Promise<void> {
    return this.#sink.taken();
  }
}

/**
 * Writes one output of an execution. Where lines have a prefix or a time they are written whole, so that those of
 * several executions are not mixed; without either, bytes are written as they are, at once.
 */
export class OutputWriter {
  readonly #sink: SharedSink;
  readonly #look: () => LineLook;
  /** The beginning of a line whose end has not come. */
  #pending: Uint8Array[] = [];
  #pendingBytes = 0;
  #head = "";

  constructor(sink: SharedSink, look: () => LineLook) {
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

  /** The output has ended, with or without a line break. */
  end(): void {
    this.#flush();
    // The next output begins a line anyway; alone, it stays as it was written.
    if (this.#look().prefix !== null && this.#sink.isOpenFor(this)) this.#sink.write(this, LINE_BREAK);
  }

  #flush(): void {
    if (this.#pendingBytes > 0) this.#sink.write(this, this.#takeLine(true));
  }

  /** @param isNext whether it is written next, after what this output wrote last. */
  #takeLine(isNext: boolean): Uint8Array {
    // Continue a line that is already on the screen: it was too long, or no other output has written since.
    const goesOn = isNext && this.#sink.isOpenFor(this);
    const line = Buffer.concat([Buffer.from(goesOn ? "" : this.#head), ...this.#pending]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return line;
  }
}

function headOf({ prefix, hasTime }: LineLook, atMs: number | null): string {
  const time = atMs === null ? "unknown" : new Date(atMs).toISOString();
  return `${prefix ?? ""}${hasTime ? `${time.padEnd(TIME_LETTERS)} ` : ""}`;
}

/** When the byte at an offset was written; null where that is not known. */
function timeAt(times: readonly OutputTime[], offset: bigint): number | null {
  const time = times.findLast((one) => one.offset <= offset)?.time;
  return time === undefined ? null : timestampMs(time);
}
