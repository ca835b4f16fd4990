import type { Progress, Shell, Sink, Work } from "../shell.ts";
import { printable, truncate } from "./text.ts";
import { formatDuration } from "./units.ts";

/** How long a command can be silent before its progress is shown, in milliseconds. */
const QUIET_MS = 2_000;
const INTERVAL_MS = 1_000;
const CLEAR_LINE = "\r\u001b[K";

/**
 * Create the shell of a command that shows its progress. On a terminal, standard error then has a line that says what
 * the command is doing and for how long, once nothing was written for two seconds. The line disappears before anything
 * else is written. Without a terminal the shell is returned unchanged.
 */
export function withProgress(shell: Shell): Shell {
  const { err, out, ask, askSecret, env } = shell;
  if (shell.progress !== undefined || !err.isTerminal || env.TERM === "dumb") return shell;
  const line = new ProgressLine(err, shell.progressAfterMs ?? QUIET_MS);
  return {
    ...shell,
    progress: line,
    out: line.guard(out),
    err: line.guard(err),
    ask: line.pausing(ask),
    askSecret: line.pausing(askSecret ?? null),
  };
}

/** Run `work` with a progress line that shows `text`. */
export async function showing<T>(
  { progress }: Pick<Shell, "progress">,
  text: string,
  work: (shown: Work | undefined) => Promise<T>,
): Promise<T> {
  const shown = progress?.begin(text);
  try {
    return await work(shown);
  } finally {
    shown?.end();
  }
}

interface Shown {
  text: string;
  readonly startMs: number;
}

class ProgressLine implements Progress {
  readonly #err: Sink;
  readonly #quietMs: number;
  /** The work in progress, oldest first. The line shows the oldest, which includes the others. */
  readonly #works = new Set<Shown>();
  #timer: NodeJS.Timeout | undefined;
  #isShown = false;
  #isPaused = false;

  constructor(err: Sink, quietMs: number) {
    this.#err = err;
    this.#quietMs = quietMs;
  }

  begin(text: string): Work {
    const work: Shown = { text, startMs: performance.now() };
    this.#works.add(work);
    if (this.#timer === undefined) this.#wait(this.#quietMs);
    return {
      update: (changed) => {
        work.text = changed;
        if (this.#isShown) this.#show();
      },
      end: () => {
        this.#works.delete(work);
        if (this.#works.size > 0) return;
        clearTimeout(this.#timer);
        this.#timer = undefined;
        this.#clear();
      },
    };
  }

  /** A sink that removes the line before it writes. */
  guard(sink: Sink): Sink {
    return {
      write: (data) => {
        this.#clear();
        if (this.#timer !== undefined) this.#wait(this.#quietMs);
        sink.write(data);
      },
      taken: () => sink.taken(),
      finish: () => sink.finish(),
      get isTerminal() {
        return sink.isTerminal;
      },
      columns: () => sink.columns(),
      rows: () => sink.rows(),
    };
  }

  /** A question during which the line is not shown, because the user is typing. */
  pausing(ask: Shell["ask"]): Shell["ask"] {
    if (ask === null) return null;
    return async (question) => {
      this.#clear();
      this.#isPaused = true;
      try {
        return await ask(question);
      } finally {
        this.#isPaused = false;
      }
    };
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    if (!Number.isFinite(ms)) return;
    this.#timer = setTimeout(() => {
      this.#show();
      this.#wait(INTERVAL_MS);
    }, ms).unref();
  }

  #show(): void {
    const [work] = this.#works;
    if (work === undefined || this.#isPaused) return;
    const text = `${printable(work.text)} ... ${formatDuration(performance.now() - work.startMs)}`;
    this.#err.write(CLEAR_LINE + truncate(text, Math.max(1, (this.#err.columns() || 80) - 1)));
    this.#isShown = true;
  }

  #clear(): void {
    if (this.#isShown) this.#err.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
