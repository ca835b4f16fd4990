import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { StreamName } from "../output/output-plan.ts";
import { LOG_BEGIN, type LogMark } from "./log-place.ts";

/** How much of each stream of a log is stored. */
export type Marks = Readonly<Record<StreamName, LogMark>>;

const FILE = "log-marks.json";

/**
 * Minimum time between two saves of the marks. After a crash, the entries since the last save are read again,
 * and those that were already stored are dropped.
 */
const SAVE_EVERY_MS = 1_000;

/**
 * Stores the marks of a log in the execution's directory. If a mark is lost, the log is read again from its
 * beginning.
 */
export class LogMarks {
  readonly #path: string;
  #marks: Marks | null = null;
  #isSaved = true;
  #savedAtMs = 0;
  #saving: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.#path = join(directory, FILE);
  }

  /** The latest marks, from this keeper or an earlier one. */
  async load(): Promise<Marks> {
    this.#marks ??= parseMarks(await readFile(this.#path, "utf8").catch(() => ""));
    return this.#marks;
  }

  /** Remember the marks, and write them if the last write was long enough ago. */
  note(marks: Marks): void {
    this.#marks = marks;
    this.#isSaved = false;
    const nowMs = performance.now();
    if (nowMs - this.#savedAtMs < SAVE_EVERY_MS) return;
    this.#savedAtMs = nowMs;
    // Ignore the error, because the next entry or the end of the log writes the marks again.
    this.save().catch(() => {});
  }

  /** Write the remembered marks. */
  save(): Promise<void> {
    this.#saving = this.#saving.catch(() => {}).then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    if (this.#isSaved || this.#marks === null) return;
    const marks = this.#marks;
    this.#isSaved = true;
    try {
      await writeFile(`${this.#path}.new`, formatMarks(marks), { mode: 0o600 });
      await rename(`${this.#path}.new`, this.#path);
    } catch (error) {
      this.#isSaved = false;
      throw error;
    }
  }
}

function formatMarks(marks: Marks): string {
  return JSON.stringify(marks, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
}

function parseMarks(text: string): Marks {
  try {
    const { stdout, stderr } = JSON.parse(text);
    return { stdout: toMark(stdout), stderr: toMark(stderr) };
  } catch {
    return { stdout: LOG_BEGIN, stderr: LOG_BEGIN };
  }
}

function toMark({ atNs, offset }: { readonly atNs: string; readonly offset: number }): LogMark {
  if (!Number.isSafeInteger(offset)) throw new Error("a mark has no offset");
  return { atNs: BigInt(atNs), offset };
}
