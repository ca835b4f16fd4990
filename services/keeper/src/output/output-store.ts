import { open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errorCode } from "@rollcall/process";
import { endOf, type OutputFile, type OutputRules, planAppend, planRead, type StreamName } from "./output-plan.ts";
import { beginSince, marksOf, type TimeMark } from "./output-times.ts";
import { TimeIndex } from "./time-index.ts";

/** A piece of a stream. */
export interface Piece {
  readonly offset: number;
  readonly data: Uint8Array;
}

/** A piece of a stream, and when it was written. */
export interface TimedPiece extends Piece {
  /** The times, in order. Bytes before the first one have no known time. */
  readonly times: readonly TimeMark[];
}

const FILE_MODE = 0o600;
/** The maximum number of times in a piece. The piece ends before the next one. */
const MOST_TIMES = 256;
const DIGITS = 16;

export interface OutputStoreOptions {
  /** The execution's directory. */
  readonly directory: string;
  readonly name: StreamName;
  readonly rules: OutputRules;
}

/** The files of one stream of output, in the execution's directory. Writes must not overlap. */
export class OutputStore {
  readonly #directory: string;
  readonly #name: StreamName;
  readonly #rules: OutputRules;
  readonly #times: TimeIndex;
  #files: readonly OutputFile[];

  private constructor({ directory, name, rules }: OutputStoreOptions, files: readonly OutputFile[], times: TimeIndex) {
    this.#directory = directory;
    this.#name = name;
    this.#rules = rules;
    this.#files = files;
    this.#times = times;
  }

  /** Open the store with what earlier keepers have written. */
  static async open(options: OutputStoreOptions): Promise<OutputStore> {
    const { directory, name } = options;
    const names = (await readdir(directory)).filter((one) => one.startsWith(`${name}-`)).sort();
    const files = await Promise.all(
      names.map(async (one) => ({
        start: Number.parseInt(one.slice(name.length + 1), 10),
        bytes: (await stat(join(directory, one))).size,
      })),
    );
    return new OutputStore(options, files, await TimeIndex.open(directory, name, endOf(files)));
  }

  /** The offset of the oldest output that is kept. */
  get begin(): number {
    return this.#files[0]?.start ?? 0;
  }

  get end(): number {
    return endOf(this.#files);
  }

  /** @param atMs when the chunk was written, in wall time. */
  async append(chunk: Uint8Array, atMs: number): Promise<void> {
    await this.#times.note(this.end, atMs, this.begin);
    const { files, actions } = planAppend(this.#files, chunk.length, this.#rules);
    for (const action of actions) {
      const path = this.#path(action.start);
      if (action.kind === "remove") await rm(path, { force: true });
      else await writeFile(path, chunk.subarray(action.from, action.to), { flag: "a", mode: FILE_MODE });
    }
    this.#files = files;
  }

  /** Read from an offset. Returns an empty piece at the end. Output that is no longer kept is skipped. */
  async read(offset: number, limitBytes: number): Promise<Piece> {
    for (let from = offset; ; ) {
      const plan = planRead(this.#files, from, limitBytes);
      if (plan === null) return { offset: Math.min(from, this.end), data: new Uint8Array() };
      try {
        return await this.#readFile(plan);
      } catch (error) {
        if (errorCode(error) !== "ENOENT") throw error;
        // The file was removed after the plan was made, to make room. The next file now has the oldest output.
        const removed = this.#files.find(({ start }) => start === plan.start);
        from = Math.max(from, removed === undefined ? this.begin : removed.start + removed.bytes);
      }
    }
  }

  /** Like read(), with times. The number of times in a piece is limited. */
  async readTimed(offset: number, limitBytes: number): Promise<TimedPiece> {
    const { offset: from, data } = await this.read(offset, limitBytes);
    if (data.length === 0) return { offset: from, data, times: [] };
    const piece = { from, to: from + data.length, most: MOST_TIMES };
    const { marks, end } = marksOf(await this.#times.marks(), piece);
    return { offset: from, data: data.subarray(0, end - from), times: marks };
  }

  /** Offset of the output that was written at a wall time or later, see beginSince(). */
  async since(wallMs: number): Promise<{ readonly offset: number; readonly isCut: boolean }> {
    return beginSince(await this.#times.marks(), wallMs, { begin: this.begin, end: this.end });
  }

  async #readFile(plan: NonNullable<ReturnType<typeof planRead>>): Promise<Piece> {
    const data = Buffer.alloc(plan.bytes);
    const file = await open(this.#path(plan.start), "r");
    try {
      const { bytesRead } = await file.read(data, 0, plan.bytes, plan.position);
      return { offset: plan.start + plan.position, data: data.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  }

  #path(start: number): string {
    return join(this.#directory, `${this.#name}-${String(start).padStart(DIGITS, "0")}`);
  }
}
