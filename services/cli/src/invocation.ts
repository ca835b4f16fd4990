import type { ContextSource } from "./contexts/choose-context.ts";
import type { Shell } from "./shell.ts";

/** What can be said with every verb that calls the API. */
export interface GlobalOptions {
  readonly server?: string;
  readonly registry?: string;
  readonly health?: string;
  readonly admin?: string;
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
  /** The context that counts; absent where none was looked for. */
  readonly chosenContext?: ContextSource;
}

/** One call of one verb. */
export interface Invocation<Options = unknown> {
  /** The process. */
  readonly shell: Shell;
  /** The verb's own words, without options. */
  readonly args: readonly string[];
  /** The options, the global ones included. */
  readonly options: GlobalOptions & Options;
}

/** What a verb does. It throws UsageError or Failure when it cannot. */
export type Verb<Options = unknown> = (invocation: Invocation<Options>) => Promise<void>;
