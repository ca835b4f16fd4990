/** Where text goes: standard output or standard error. */
export interface Sink {
  /** Write text or bytes as they are. */
  write(data: string | Uint8Array): void;
  /** Wait until the reader has taken what was written, which bounds the memory in use. */
  taken(): Promise<void>;
  /** Wait until everything is written, and on the disk if it is a file. Throws Failure with the cause and the file. */
  finish(): Promise<void>;
  /** Whether a person reads it on a terminal, so that colours and redrawing make sense. */
  readonly isTerminal: boolean;
  /** The terminal's width in columns at this moment; 0 when it is no terminal. */
  columns(): number;
  /** The terminal's height in rows at this moment; 0 when it is no terminal. */
  rows(): number;
}

/** Drops what is written. */
export const SILENT_SINK: Sink = {
  write: () => {},
  taken: async () => {},
  finish: async () => {},
  isTerminal: false,
  columns: () => 0,
  rows: () => 0,
};

/** The process that the command line runs in. The executable makes one; tests make their own. */
export interface Shell {
  /** The words after the program's name. */
  readonly args: readonly string[];
  /** The environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working directory, absolute. */
  readonly cwd: string;
  /** The user's home directory, absolute. */
  readonly home: string;
  /** The user's numeric id; null on systems without. */
  readonly userId: number | null;
  /** What the program runs on, for example { node: "26.12.1", platform: "linux-x64" }. */
  readonly runsOn: { readonly node: string; readonly platform: string };
  /** Standard output. */
  readonly out: Sink;
  /** Standard error. */
  readonly err: Sink;
  /** Ask the user at the terminal. Resolves to the line that was typed; null without a terminal. */
  readonly ask: ((question: string) => Promise<string>) | null;
  /** The same for a secret, which is not shown while it is typed; null or absent without a terminal. */
  readonly askSecret?: ((question: string) => Promise<string>) | null;
  /** Read all of standard input, when that is not a terminal. */
  readonly readInput?: () => Promise<string>;
  /** Wall time in milliseconds since 1970, to show how long ago something was. */
  wallMs(): number;
  /**
   * Aborts on Ctrl-C, when the process is asked to end, and, with a Failure as its reason, when output cannot be
   * written.
   */
  readonly interrupted: AbortSignal;
}
