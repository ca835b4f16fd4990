/** Where text goes: standard output or standard error. */
export interface Sink {
  /** Write text or bytes unchanged. */
  write(data: string | Uint8Array): void;
  /** Wait until the reader has consumed all written data, which bounds the memory in use. */
  taken(): Promise<void>;
  /**
   * Wait until everything is written, and flushed to disk if it is a file. Throws Failure with the cause and the file.
   */
  finish(): Promise<void>;
  /** Whether a person reads the output on a terminal, so that colours and redrawing make sense. */
  readonly isTerminal: boolean;
  /** The terminal's current width in columns; 0 without a terminal. */
  columns(): number;
  /** The terminal's current height in rows; 0 without a terminal. */
  rows(): number;
}

/** Discards everything. */
export const SILENT_SINK: Sink = {
  write: () => {},
  taken: async () => {},
  finish: async () => {},
  isTerminal: false,
  columns: () => 0,
  rows: () => 0,
};

/** The limits for a stream that is silent or broken. */
export interface StreamLimits {
  /** A stream that has received nothing for this long is broken. */
  readonly silenceMs: number;
  /** How long to try to open a broken stream again. */
  readonly giveUpMs: number;
  /** The pause before the second attempt. Later pauses are longer. */
  readonly firstPauseMs: number;
}

/** Something that a command is doing, as its progress line shows it. */
export interface Work {
  /** Change the text, for example because more is done. */
  update(text: string): void;
  /** Remove the text. */
  end(): void;
}

/** Shows what a command is doing, if that takes long. */
export interface Progress {
  /** Begin to show `text`, for example "drain web-1", with the time that it has taken. */
  begin(text: string): Work;
}

/** The process that the command line runs in. The executable makes one; tests make their own. */
export interface Shell {
  /** The words after the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working directory, absolute. */
  readonly cwd: string;
  /** The user's home directory, absolute. */
  readonly home: string;
  /** The user's numeric id; null on systems without user ids. */
  readonly userId: number | null;
  /** The folder where the system describes its processes: /proc. Absent on systems without such a folder. */
  readonly processFolder?: string;
  /** What the program runs on, for example { node: "26.12.1", platform: "linux-x64" }. */
  readonly runsOn: { readonly node: string; readonly platform: string };
  readonly out: Sink;
  readonly err: Sink;
  /** Ask the user at the terminal. Resolves to the line that was typed; null without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
  /** Like `ask`, for a secret that is not shown while it is typed; null or absent without a terminal. */
  readonly askSecret?: ((question: string) => Promise<string>) | null;
  /** Read all of standard input, when that is not a terminal. */
  readonly readInput?: () => Promise<string>;
  /** Wall time in milliseconds since 1970, to show how long ago something was. */
  wallMs(): number;
  /**
   * Aborts on Ctrl-C and when the process is asked to terminate. Also aborts, with a Failure as its reason, when
   * output cannot be written.
   */
  readonly interrupted: AbortSignal;
  /** Limits of streams. Default: LIMITS in keep-watching.ts. */
  readonly streamLimits?: StreamLimits;
  /** Shows progress on a terminal; absent without one. withProgress() in progress.ts creates it. */
  readonly progress?: Progress;
  /** How long a command can be silent before its progress is shown, in milliseconds. Default: 2,000. */
  readonly progressAfterMs?: number;
}
