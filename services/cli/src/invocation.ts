import type { ContextSource } from "./contexts/choose-context.ts";
import type { Shell } from "./shell.ts";

/** The options of every verb that calls the API. */
export interface GlobalOptions {
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
  readonly scheduler?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly tlsServerName?: string;
  readonly output?: string;
  readonly timeout?: string;
  /** False with --no-color. */
  readonly color: boolean;
  /** --context. */
  readonly context?: string;
  /** The context in use; absent when none was looked up. */
  readonly chosenContext?: ContextSource;
}

/** One call of one verb. */
export interface Invocation<Options = unknown> {
  readonly shell: Shell;
  /** The verb's arguments, without options. */
  readonly args: readonly string[];
  /** The options, the global ones included. */
  readonly options: GlobalOptions & Options;
}

/** The implementation of a verb. Throws UsageError or Failure when it cannot do its work. */
export type Verb<Options = unknown> = (invocation: Invocation<Options>) => Promise<void>;
