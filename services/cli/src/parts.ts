import type { Plain } from "./output/format.ts";

/** A verb that another part of the executable provides: `up`, `serve`, `agent`. It parses its own arguments. */
export interface ForeignVerb {
  readonly name: string;
  /** The arguments after the name, for help: "<service>"; empty for none. */
  readonly usage: string;
  readonly description: string;
  /** Run the verb with the words after its name. Returns the exit code. */
  run(args: readonly string[]): Promise<number>;
  /** Candidates for shell completion after the name, given the words so far. */
  complete(words: readonly string[]): Promise<readonly string[]>;
}

/** One key of the configuration, as `config list` shows it. */
export interface ListedSetting {
  readonly path: string;
  readonly value: string;
  readonly default: string;
  /** "default", "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". */
  readonly source: string;
  /** The alias that was written instead of the path, if any. */
  readonly alias: string | undefined;
  readonly aliases: readonly string[];
  readonly environment: string;
  readonly flag: string | undefined;
  readonly doc: string;
}

/** The configuration of all services together, which only the executable knows. */
export interface ConfigurationView {
  /**
   * Every key with its value and where it comes from. Throws Failure with every problem of the file and the
   * environment.
   */
  list(file: string | undefined): Promise<{
    readonly settings: readonly ListedSetting[];
    /** One line for each contradiction between values that are individually valid. */
    readonly problems: readonly string[];
    /** Harmless findings, one per line: keys of other programs, unknown ROLLCALL_ variables. */
    readonly warnings: readonly string[];
  }>;
  /** A file with every key at its default value and with comments. */
  defaultYaml(): Promise<string>;
  /**
   * Convert a file of Bacalhau or KohakuRiver, or an older file of Rollcall, to current keys. Throws Failure with
   * every problem in the file.
   */
  convert(file: string): Promise<ConvertedFile>;
}

export interface ConvertedFile {
  readonly settings: readonly {
    readonly path: string;
    /** The value as in YAML: a string, or a list or map of strings. */
    readonly written: Plain;
    /** The position in the file: "bacalhau.yaml:12". */
    readonly where: string;
    /** The key in the original file; undefined when it is the same as `path`. */
    readonly from: string | undefined;
    /** For people; empty when there is nothing to say. */
    readonly note: string;
  }[];
  /** Keys of the original file without a counterpart in Rollcall. */
  readonly leftAside: readonly {
    readonly path: string;
    readonly where: string;
    readonly why: string;
  }[];
  /** The complete, usable file, with comments. */
  readonly yaml: string;
}

/** Runs another command line of this program. Returns its exit code and what it wrote. */
export type RunAgain = (
  words: readonly string[],
) => Promise<{ readonly code: number; readonly out: string; readonly err: string }>;

/** The verbs and the configuration view that the executable adds to this package's commands. */
export interface Parts {
  readonly verbs: readonly ForeignVerb[];
  readonly configuration: ConfigurationView;
}
