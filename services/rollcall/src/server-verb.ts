import { Failure, type ForeignVerb, type Shell, UsageError } from "@rollcall/cli";
import { isSystemError, surviveStraySignals, systemErrorText } from "@rollcall/process";
import { hasTerminal } from "./has-terminal.ts";

const KEEP_ALIVE_MS = 60_000;
const FAILED = 1;
const MISUSED = 2;

/** A verb that runs until it is stopped. */
export interface ServerVerb {
  readonly name: string;
  /** The arguments after the name, for help. */
  readonly usage: string;
  readonly description: string;
  /** The arguments that can be given, each at most once. */
  readonly choices: readonly string[];
  /** Import the verb's code, which only this verb needs. */
  load(): Promise<{
    run(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number>;
    readonly flags: readonly string[];
  }>;
}

export interface ServerVerbContext {
  readonly shell: Shell;
  readonly process: NodeJS.Process;
  /** Stop handling signals and failed writes, because the verb handles both itself. */
  releaseSignals(): void;
}

/** Adapt a server verb to the command line. */
export function toForeignVerb(
  { name, usage, description, choices, load }: ServerVerb,
  { shell, process, releaseSignals }: ServerVerbContext,
): ForeignVerb {
  return {
    name,
    usage,
    description,
    run: async (words) => {
      surviveStraySignals(process, hasTerminal());
      releaseSignals();
      const code = await reported(shell, async () => (await load()).run(words, shell, process));
      // Exit explicitly, because leftovers of a server, such as a closing pool or a file watcher, must not keep
      // the process alive.
      return process.exit(code);
    },
    complete: async (words) => {
      if (words.at(-1)?.startsWith("-")) return (await load()).flags;
      const before = words.slice(0, -1);
      const isNext = before.every((word) => choices.includes(word));
      return isNext ? choices.filter((choice) => !before.includes(choice)) : [];
    },
  };
}

/** `agent` and `keeper`, which every build has. */
export const MACHINE_VERBS: readonly ServerVerb[] = [
  {
    name: "agent",
    usage: "",
    description: "Run an agent on this machine",
    choices: [],
    load: async () => {
      const { AGENT_FLAGS, runAgent } = await import("./verbs/agent.ts");
      return { run: runAgent, flags: AGENT_FLAGS };
    },
  },
  {
    name: "keeper",
    usage: "",
    description: "Keep this machine's executions running while its agent restarts",
    choices: [],
    load: async () => {
      const { KEEPER_FLAGS, runKeeper } = await import("./verbs/keeper.ts");
      return { run: runKeeper, flags: KEEPER_FLAGS };
    },
  },
];

async function reported(shell: Shell, run: () => Promise<number>): Promise<number> {
  // Keep Node.js alive while a verb ends, because the verb may wait for something that does not keep it alive,
  // such as a detached child.
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  try {
    const code = await run();
    await shell.out.finish();
    return code;
  } catch (error) {
    const known = error instanceof UsageError || error instanceof Failure;
    const unexpected = error instanceof Error ? error.stack : String(error);
    const text = isSystemError(error) ? systemErrorText(error) : known ? error.message : unexpected;
    shell.err.write(`${text}\n`);
    return error instanceof UsageError ? MISUSED : FAILED;
  } finally {
    clearInterval(alive);
  }
}
