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
import { KEEPER_LOG } from "../work/keeper-access.ts";
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
      doc: "Exit when no execution runs and no agent is connected. For keepers that an agent starts.",
    },
    "Keeper.LogFile": {
      schema: bool(),
      default: false,
      flag: "log-file",
      doc: "Write the log to keeper/keeper.log in the state directory, up to 8 MiB, instead of standard output.",
    },
  }),
};

/** The flags of `keeper`, for completion. */
export const KEEPER_FLAGS = verbFlags(KEEPER_VERB_KEYS);

const HELP = {
  usage: "keeper [options]",
  description:
    "Run the keeper of this machine, which keeps its executions running while the agent restarts. An agent with " +
    "Work.Executors starts a keeper automatically; in production, run the keeper as a separate unit with the " +
    "agent's configuration.",
  keys: KEEPER_VERB_KEYS,
  notes: [],
};

/** Maximum size of each of the two log files, in bytes. */
const MOST_BYTES = 4_194_304;

/** `rollcall keeper`. Returns the exit code: 0 after SIGTERM or when it retires, 1 for a failure. */
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
  const destination = new BoundedFile(join(directory, KEEPER_LOG));
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

/** A log file of limited size. When it is full, it is renamed, and replaces the file that was renamed before. */
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
