import type { Clock } from "./clock.ts";
import { errorCode } from "./error-code.ts";

/** Of one cause in a window; further lines are counted. */
const MOST_LINES = 10;
const WINDOW_MS = 60_000;
/** Causes that are counted at a time; what does not fit is written. */
const MOST_CAUSES = 1_000;
const MOST_WORDS = 120;

/** What was left out of a log because the same had been written often enough. */
export interface LeftOut {
  /** The message of the lines. */
  readonly of: string;
  /** What they have in common besides: the task or chore, and the error's code or words without numbers. */
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
 * Counts warnings and errors of one cause, so that an outage that fails a thousand times a minute is ten lines and a
 * number, and not a disk that is full.
 */
export class RepeatedLines {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #byCause = new Map<string, Counted>();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** Whether a line is written; it is counted otherwise. */
  note(message: string, fields: unknown): boolean {
    const cause = causeOf(fields);
    // A fact of its own, such as a setting that is unknown, and not the repetition of a failure.
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

  /** Whether takeDue() would answer anything, or forget something. */
  get isDue(): boolean {
    const [first] = this.#byCause.values();
    return first !== undefined && first.endsAtMs <= this.#clock.nowMs();
  }

  /** What was left out in windows that have ended; they begin again with the next line. */
  takeDue(): readonly LeftOut[] {
    const nowMs = this.#clock.nowMs();
    const due: LeftOut[] = [];
    // Windows are of one length, and so end in the order in which they began.
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
  // Ports, ids and times differ from line to line.
  return `${error.name}: ${error.message}`.replaceAll(/[0-9a-f]*\d[0-9a-f]*/gi, "#").slice(0, MOST_WORDS);
}
