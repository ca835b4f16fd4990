import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { agentKeys, checkWorkConfig, defaultStateDirectory, type WorkConfig, workKeys } from "@rollcall/agent";
import { cliVersion, columnsOf, Failure, type Shell, UsageError } from "@rollcall/cli";
import { bool, defineKeys } from "@rollcall/config";
import { startKeeper } from "@rollcall/keeper";
import {
  createLogger,
  isSystemError,
  type Logger,
  makeDirectory,
  runProcess,
  systemErrorText,
} from "@rollcall/process";
import { ALL_KEYS } from "../config/all-keys.ts";
import { loadConfiguration } from "../config/load.ts";
import { PROCESS_KEYS } from "../config/process-keys.ts";
import { readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, verbFlags } from "../config/verb-help.ts";
import { hasTerminal } from "../has-terminal.ts";
import { openLog } from "../log.ts";
import { lockKeeper } from "../up/directory-lock.ts";
import { checkWorkUsers } from "../work/check-users.ts";
import { keeperSettings } from "../work/keeper-settings.ts";

/** The keys that `rollcall keeper` reads. */
const KEEPER_VERB_KEYS = {
  "Compute.StateDir": agentKeys["Compute.StateDir"],
  ...workKeys,
  "Log.Level": PROCESS_KEYS["Log.Level"],
  "Log.Format": PROCESS_KEYS["Log.Format"],
  ...defineKeys({
    "Keeper.EndsIdle": {
      schema: bool(),
      default: false,
      flag: "ends-idle",
      doc: "End when no execution runs and no agent is connected. For keepers that an agent starts.",
    },
    "Keeper.LogFile": {
      schema: bool(),
      default: false,
      flag: "log-file",
      doc: "Write the log to keeper/keeper.log of the state directory, 8 MiB at most, and not to standard output.",
    },
  }),
};

/** The flags of `keeper`, for completion. */
export const KEEPER_FLAGS = verbFlags(KEEPER_VERB_KEYS);

const HELP = {
  usage: "keeper [options]",
  description:
    "Keep the executions of this machine for its agent, which may be restarted at will. An agent with Work.Executors " +
    "starts its keeper itself; in production, run it as a unit of its own, with the agent's configuration.",
  keys: KEEPER_VERB_KEYS,
  notes: [],
};

/** Of one file; there are two of them. */
const MOST_BYTES = 4_194_304;

/** `rollcall keeper`. Answers the exit code: 0 after SIGTERM or when it retires, 1 when it could not work. */
export async function runKeeper(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, KEEPER_VERB_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  if (args.words.length > 0) throw new UsageError(`keeper takes no arguments: '${args.words[0]}'`);
  const { values } = await loadConfiguration<WorkConfig & KeeperValues>(
    { keys: KEEPER_VERB_KEYS, alsoKnown: ALL_KEYS, check: checkWorkConfig },
    { shell, file: args.file, flags: args.flags },
  );
  await checkWorkUsers(values);
  const settings = keeperSettings(values, values["Compute.StateDir"] ?? defaultStateDirectory());
  const unlock = await lock(settings.directory ?? settings.stateDirectory, process.pid);
  const log = await logOf(values, settings.stateDirectory, shell);
  const endsIdle = values["Keeper.EndsIdle"];
  const code = await runProcess({
    process,
    log,
    hasTerminal: hasTerminal(),
    start: () => startKeeper({ settings, version: cliVersion(), endsIdle, log }),
  });
  await unlock();
  return code;
}

interface KeeperValues {
  readonly "Compute.StateDir": string | undefined;
  readonly "Log.Level": "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  readonly "Log.Format": "auto" | "json" | "pretty";
  readonly "Keeper.EndsIdle": boolean;
  readonly "Keeper.LogFile": boolean;
}

async function logOf(values: KeeperValues, stateDirectory: string, shell: Shell): Promise<Logger> {
  if (!values["Keeper.LogFile"]) return openLog(values, shell, "keeper");
  const directory = join(stateDirectory, "keeper");
  await makeDirectory(directory, 0o700);
  const destination = new BoundedFile(join(directory, "keeper.log"));
  return createLogger({ level: values["Log.Level"], destination, fields: { process: "keeper" } });
}

async function lock(directory: string, pid: number): Promise<() => Promise<void>> {
  try {
    return await lockKeeper(directory, pid);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new Failure(`the directory ${directory} cannot be used: ${systemErrorText(error)}`, { cause: error });
  }
}

/** A file of log lines that is put aside when it is large, in place of the one put aside before. */
class BoundedFile {
  readonly #path: string;
  #bytes: number;

  constructor(path: string) {
    this.#path = path;
    this.#bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  write(line: string): void {
    if (this.#bytes > MOST_BYTES) {
      renameSync(this.#path, `${this.#path}.1`);
      this.#bytes = 0;
    }
    this.#bytes += Buffer.byteLength(line);
    appendFileSync(this.#path, line, { mode: 0o600 });
  }
}
