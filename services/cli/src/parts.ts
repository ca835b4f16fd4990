/** A verb that another part of the executable brings: `up`, `serve`, `agent`. It reads its own words. */
export interface ForeignVerb {
  readonly name: string;
  /** The arguments after the name, for help: "<service>"; empty for none. */
  readonly usage: string;
  readonly description: string;
  /** Run it with the words after its name. Answers the exit code. */
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
  /** Every key with its value and where it comes from. Throws Failure with every problem of the file and the environment. */
  list(file: string | undefined): Promise<{
    readonly settings: readonly ListedSetting[];
    /** A line for each contradiction between values that are right by themselves. */
    readonly problems: readonly string[];
  }>;
  /** A file with every key at its default, explained. */
  defaultYaml(): Promise<string>;
}

/** What the executable adds to the command line. */
export interface Parts {
  readonly verbs: readonly ForeignVerb[];
  readonly configuration: ConfigurationView;
}
