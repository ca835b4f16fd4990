import { appendFile, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StreamName } from "./output-plan.ts";
import { MOST_MARKS, markAt, needsMark, type TimeMark, thinMarks } from "./output-times.ts";

const FILE_MODE = 0o600;
const MARK_BYTES = 24;

/**
 * The times of one stream of output, in a file next to it. Only the last mark stays in memory. A missing time is
 * unknown and is never guessed.
 */
export class TimeIndex {
  readonly #path: string;
  #last: TimeMark | null = null;
  #count = 0;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * @param end the offset at which the stream ends. Marks after it belong to bytes that were lost in a power failure.
   */
  static async open(directory: string, name: StreamName, end: number): Promise<TimeIndex> {
    const index = new TimeIndex(join(directory, `times-${name}`));
    const { marks, isWhole } = await index.#read();
    const kept = marks.filter(({ offset }) => offset < end);
    if (!isWhole || kept.length < marks.length) await index.#replace(kept);
    index.#note(kept);
    return index;
  }

  /** Record when the bytes from an offset on are written. Must be called before they are written. */
  async note(offset: number, atMs: number, heldFrom: number): Promise<void> {
    if (!needsMark(this.#last, atMs)) return;
    const mark = markAt(offset, atMs);
    try {
      if (this.#count >= MOST_MARKS) this.#note(await this.#replace(thinMarks((await this.#read()).marks, heldFrom)));
      await appendFile(this.#path, encode([mark]), { mode: FILE_MODE });
      this.#last = mark;
      this.#count += 1;
    } catch {
      // On a full disk, lose the times instead of the output. Drop all marks, because without a new mark, these bytes
      // would seem older than they are.
      this.#note([]);
      await rm(this.#path, { force: true }).catch(() => {});
    }
  }

  /** All marks, in the order of their offsets. */
  async marks(): Promise<readonly TimeMark[]> {
    return (await this.#read()).marks;
  }

  #note(marks: readonly TimeMark[]): void {
    this.#last = marks.at(-1) ?? null;
    this.#count = marks.length;
  }

  async #read(): Promise<{ readonly marks: readonly TimeMark[]; readonly isWhole: boolean }> {
    const bytes = await readFile(this.#path).catch(() => Buffer.alloc(0));
    const marks: TimeMark[] = [];
    for (let at = 0; at + MARK_BYTES <= bytes.length; at += MARK_BYTES) {
      const [offset, atMs, untilMs] = [0, 8, 16].map((part) => bytes.readDoubleLE(at + part));
      const isMark = Number.isSafeInteger(offset) && Number.isFinite(atMs) && Number.isFinite(untilMs);
      // Stop at a damaged mark. The output after it has no known time.
      if (!isMark || (offset ?? 0) < (marks.at(-1)?.offset ?? 0)) return { marks, isWhole: false };
      marks.push({ offset: offset ?? 0, atMs: atMs ?? 0, untilMs: untilMs ?? 0 });
    }
    return { marks, isWhole: bytes.length % MARK_BYTES === 0 };
  }

  async #replace(marks: readonly TimeMark[]): Promise<readonly TimeMark[]> {
    await writeFile(`${this.#path}.new`, encode(marks), { mode: FILE_MODE });
    await rename(`${this.#path}.new`, this.#path);
    return marks;
  }
}

function encode(marks: readonly TimeMark[]): Buffer {
  const bytes = Buffer.alloc(marks.length * MARK_BYTES);
  for (const [index, { offset, atMs, untilMs }] of marks.entries()) {
    const at = index * MARK_BYTES;
    bytes.writeDoubleLE(offset, at);
    bytes.writeDoubleLE(atMs, at + 8);
    bytes.writeDoubleLE(untilMs, at + 16);
  }
  return bytes;
}
