import type { Plain } from "./output/format.ts";

/** A verb that another part of the executable provides: `up`, `serve`, `agent`. It parses its own words. */
export interface ForeignVerb {
  readonly name: string;
  /** The arguments after the name, for help: "<service>"; empty for none. */
  readonly usage: string;
  readonly description: string;
  /** Run it with the words after its name. Returns the exit code. */
  run(args: readonly string[]): Promise<number>;
  /** What shell completion may offer after its name, given the words so far. */
  complete(words: readonly string[]): Promise<readonly string[]>;
}

/** One key of the configuration, as `config list` shows it. */
export interface ListedSetting {
  readonly path: string;
  readonly value: string;
  readonly default: string;
  /** "default", "rollcall.yaml:12", "environment ROLLCALL_X" or "flag --x". */
  readonly source: string;
  /** The alias that was written instead of the path, if one was. */
  readonly alias: string | undefined;
  readonly aliases: readonly string[];
  readonly environment: string;
  readonly flag: string | undefined;
  readonly doc: string;
}

/** The configuration of all services together, which the executable alone knows. */
export interface ConfigurationView {
  /**
   * Every key with its value and where it comes from. Throws Failure with every problem of the file and the
   * environment.
   */
  list(file: string | undefined): Promise<{
    readonly settings: readonly ListedSetting[];
    /** A line for each contradiction between values that are right by themselves. */
    readonly problems: readonly string[];
    /** What is odd but harmless, a line each: keys of other programs, unknown ROLLCALL_ variables. */
    readonly warnings: readonly string[];
  }>;
  /** A file with every key at its default, explained. */
  defaultYaml(): Promise<string>;
  /**
   * A file of Bacalhau's or KohakuRiver's, or an older one of ours, in our keys. Throws Failure with every problem of
   * the file.
   */
  convert(file: string): Promise<ConvertedFile>;
}

/** A file that was converted. */
export interface ConvertedFile {
  readonly settings: readonly {
    readonly path: string;
    /** As YAML would have it: texts, lists and maps of them. */
    readonly written: Plain;
    /** "bacalhau.yaml:12". */
    readonly where: string;
    /** The key in the file; undefined when it is called as here. */
    readonly from: string | undefined;
    /** For people; empty when there is nothing to say. */
    readonly note: string;
  }[];
  /** Keys that mean nothing here. */
  readonly leftAside: readonly {
    readonly path: string;
    readonly where: string;
    readonly why: string;
  }[];
  /** The whole as a file that can be used, with comments. */
  readonly yaml: string;
}

/** What the executable adds to the command line. */
export interface Parts {
  readonly verbs: readonly ForeignVerb[];
  readonly configuration: ConfigurationView;
}
