import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";

/** Maximum number of lines to write per cause and window; further lines are only counted. */
const MOST_LINES = 10;
const WINDOW_MS = 60_000;
/** Maximum number of causes to count at the same time. Lines of further causes are written. */
const MOST_CAUSES = 1_000;
const MOST_WORDS = 120;

/** Lines that were omitted from the log because they repeated too often. */
export interface LeftOut {
  /** The message of the lines. */
  readonly of: string;
  /**
   * What the lines have in common in addition to the message: the task or chore, and the error's code or, without a
   * code, its message without numbers.
   */
  readonly cause: string;
  readonly lines: number;
}

interface Counted {
  readonly of: string;
  readonly cause: string;
  readonly endsAtMs: number;
  written: number;
  leftOut: number;
}

/**
 * Limits repeated warnings and errors by cause. An outage with a thousand failures a minute writes ten lines and a
 * count instead of filling the disk.
 */
export class RepeatedLines {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #byCause = new Map<string, Counted>();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** Whether to write a line. If not, the line is counted. */
  note(message: string, fields: unknown): boolean {
    const cause = causeOf(fields);
    // Always write a line without a cause. It reports a single fact, such as an unknown setting, rather than a
    // repeated failure.
    if (cause === "") return true;
    const key = `${message}\n${cause}`;
    const known = this.#byCause.get(key);
    if (known === undefined) {
      if (this.#byCause.size >= MOST_CAUSES) return true;
      const endsAtMs = this.#clock.nowMs() + WINDOW_MS;
      this.#byCause.set(key, { of: message, cause, endsAtMs, written: 1, leftOut: 0 });
      return true;
    }
    if (known.written < MOST_LINES) {
      known.written += 1;
      return true;
    }
    known.leftOut += 1;
    return false;
  }

  /** Whether a window has ended, so that takeDue() has work to do. */
  get isDue(): boolean {
    const [first] = this.#byCause.values();
    return first !== undefined && first.endsAtMs <= this.#clock.nowMs();
  }

  /** The omitted lines of windows that have ended. The next line starts a new window. */
  takeDue(): readonly LeftOut[] {
    const nowMs = this.#clock.nowMs();
    const due: LeftOut[] = [];
    // Stop at the first window that has not ended. All windows have the same length, so they end in the order of
    // their start.
    for (const [key, { of, cause, endsAtMs, leftOut }] of this.#byCause) {
      if (endsAtMs > nowMs) break;
      this.#byCause.delete(key);
      if (leftOut > 0) due.push({ of, cause, lines: leftOut });
    }
    return due;
  }
}

function causeOf(fields: unknown): string {
  if (typeof fields !== "object" || fields === null) return "";
  const named = fields as { readonly task?: unknown; readonly chore?: unknown; readonly err?: unknown };
  const of = [named.task, named.chore].filter((it) => typeof it === "string");
  return [...of, wordsOf(named.err)].filter((it) => it !== "").join(" ");
}

function wordsOf(error: unknown): string {
  const code = errorCode(error);
  if (code !== undefined) return code;
  if (!(error instanceof Error)) return "";
  // Remove ports, ids and times, which differ from line to line.
  return `${error.name}: ${error.message}`.replaceAll(/[0-9a-f]*\d[0-9a-f]*/gi, "#").slice(0, MOST_WORDS);
}
