import { access as accessFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type AgentConfig,
  agentKeys,
  checkAgentConfig,
  defaultStateDirectory,
  startAgent,
  withTlsOfUp,
} from "@rollcall/agent";
import { cliVersion, columnsOf, Failure, type Shell, UsageError } from "@rollcall/cli";
import type { Config } from "@rollcall/config";
import { isSystemError, type Logger, replaceFile, systemErrorText } from "@rollcall/process";
import { configurationPath, loadConfiguration } from "../config/load.ts";
import { PROCESS_KEYS, type ProcessConfig } from "../config/process-keys.ts";
import { type Arguments, readArguments } from "../config/read-arguments.ts";
import { formatVerbHelp, verbFlags } from "../config/verb-help.ts";
import { logConfiguration, openLog } from "../log.ts";
import { runServer } from "../run-server.ts";
import { AgentRunningError, lockStateDirectory } from "../up/directory-lock.ts";
import { CONNECTED } from "../up/local-agent.ts";
import { withDefaultsOfUp } from "../work/keeper-settings.ts";

/** The keys that `rollcall agent` reads. */
const AGENT_VERB_KEYS = {
  ...agentKeys,
  "Log.Level": PROCESS_KEYS["Log.Level"],
  "Log.Format": PROCESS_KEYS["Log.Format"],
};

/** Their values. */
type AgentVerbConfig = AgentConfig & Pick<ProcessConfig, "Log.Level" | "Log.Format">;

/** The flags of `agent`, for completion. */
export const AGENT_FLAGS = verbFlags(AGENT_VERB_KEYS);

const HELP = {
  usage: "agent [options]",
  description:
    "Run an agent: this machine registers as a compute node, holds its stream, and reports what it has and does.",
  keys: AGENT_VERB_KEYS,
  notes: ["--label may be given several times: --label zone=a --label rack=7."],
};

/** `rollcall agent`. Answers the exit code: 0 after SIGTERM or SIGINT, 1 when it could not work, 2 for wrong usage. */
export async function runAgent(words: readonly string[], shell: Shell, process: NodeJS.Process): Promise<number> {
  const args = readArguments(words, AGENT_VERB_KEYS);
  if (args.help) {
    shell.out.write(formatVerbHelp(HELP, columnsOf(shell)));
    return 0;
  }
  if (args.words.length > 0) throw new UsageError(`agent takes no arguments: '${args.words[0]}'`);
  const isOfUp = process.connected !== undefined;
  const config = await loadAgentConfig(args, shell, isOfUp);
  const log = openLog(config.values, shell, "agent");
  logConfiguration(config, log);
  endWithParent(process, log);
  const configured = isOfUp ? withDefaultsOfUp(config, shell.userId) : config.values;
  const stateDirectory = configured["Compute.StateDir"] ?? defaultStateDirectory();
  const values = await withKeeperOfBefore(configured, stateDirectory);
  const hasWork = values["Work.Executors"].length > 0 || (await hasKept(stateDirectory, values["Work.KeeperDir"]));
  // Loaded where it is needed: most agents run no work.
  if (hasWork) await (await import("../work/check-users.ts")).checkWorkUsers(values);
  const access = hasWork ? (await import("../work/keeper-access.ts")).keeperAccess : null;
  const keeper = access?.(values, stateDirectory, process);
  const unlock = await lock(stateDirectory, process.pid);
  if (values["Work.KeeperDir"] !== undefined) {
    await replaceFile(join(stateDirectory, KEEPER_NOTE), values["Work.KeeperDir"], 0o600);
  }
  const code = await runServer({
    process,
    log,
    // The agent of an `up` has a session of its own, which a closed terminal does not signal.
    ...(isOfUp && { hasTerminal: false }),
    // An `up` that has started it waits for this word.
    start: () =>
      startAgent({
        config: values,
        version: cliVersion(),
        log,
        onConnected: () => process.send?.(CONNECTED),
        ...(keeper && { keeper }),
      }),
  });
  await unlock();
  return code;
}

/**
 * Load the configuration of an agent, as `rollcall agent` and the `up` that starts one do. Throws a UsageError that
 * names every problem.
 */
export async function loadAgentConfig(
  args: Pick<Arguments, "file" | "flags">,
  shell: Pick<Shell, "env" | "cwd">,
  isOfUp: boolean,
): Promise<Config<AgentVerbConfig>> {
  const named = Object.keys(shell.env).some((name) => name.startsWith("ROLLCALL_"));
  const hasMore = named || configurationPath(shell, args.file) !== undefined;
  // The other services' keys may stand in the same file. Loading them costs memory that an agent without one need not
  // spend.
  const alsoKnown = hasMore ? (await import("../config/all-keys.ts")).ALL_KEYS : {};
  const settled = (values: AgentVerbConfig) => (isOfUp ? withTlsOfUp(values) : values);
  const check = (values: AgentVerbConfig) => checkAgentConfig(settled(values));
  const config = await loadConfiguration<AgentVerbConfig>(
    { keys: AGENT_VERB_KEYS, alsoKnown, check },
    { shell, file: args.file, flags: args.flags },
  );
  return { ...config, values: settled(config.values) };
}

/** In the state directory: where the keeper is that is a service of its own. */
const KEEPER_NOTE = "keeper-dir";

/**
 * The settings of an agent whose executors are off, with the keeper that it had: what runs there goes on, and the agent
 * still tells of it, also when every setting of work is gone.
 */
async function withKeeperOfBefore<T extends AgentConfig>(values: T, stateDirectory: string): Promise<T> {
  if (values["Work.Executors"].length > 0 || values["Work.KeeperDir"] !== undefined) return values;
  const noted = await readFile(join(stateDirectory, KEEPER_NOTE), "utf8").catch(() => undefined);
  return noted === undefined ? values : { ...values, "Work.KeeperDir": noted };
}

/** Whether something may still run here although the executors are off: a keeper is needed to see to its end. */
async function hasKept(stateDirectory: string, keeperDirectory: string | undefined): Promise<boolean> {
  if (keeperDirectory === undefined) {
    const executions = await readdir(join(stateDirectory, "keeper", "executions")).catch(() => []);
    return executions.length > 0;
  }
  // Its records are closed to the agent.
  return accessFile(join(keeperDirectory, "socket")).then(
    () => true,
    () => false,
  );
}

async function lock(stateDirectory: string, pid: number): Promise<() => Promise<void>> {
  try {
    return await lockStateDirectory(stateDirectory, pid);
  } catch (error) {
    if (error instanceof AgentRunningError) {
      throw new Failure(`${error.message}: stop it first, or choose another --state-dir`);
    }
    if (isSystemError(error)) {
      const why = `the state directory ${stateDirectory} cannot be used: ${systemErrorText(error)}`;
      throw new Failure(`${why}; choose another --state-dir`, { cause: error });
    }
    throw error;
  }
}

/**
 * An agent that `up` started ends when `up` is killed: it would run on unseen, and be in the way of the next one. It
 * says no goodbye, since this node is not meant to be away: it is judged by its silence, like one whose agent crashed,
 * and not at all when `up` is soon back.
 */
function endWithParent(process: NodeJS.Process, log: Logger): void {
  // No channel to a parent: it was started by hand.
  if (process.connected === undefined) return;
  const end = () => {
    log.warn({}, "up is gone, ending without a goodbye");
    process.exit(1);
  };
  // It may have gone while this process still loaded, before it listened.
  if (process.connected) process.on("disconnect", end);
  else end();
}
