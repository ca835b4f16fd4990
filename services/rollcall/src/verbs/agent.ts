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

/** The values of AGENT_VERB_KEYS. */
type AgentVerbConfig = AgentConfig & Pick<ProcessConfig, "Log.Level" | "Log.Format">;

/** The flags of `agent`, for completion. */
export const AGENT_FLAGS = verbFlags(AGENT_VERB_KEYS);

const HELP = {
  usage: "agent [options]",
  description:
    "Run an agent: register this machine as a compute node, maintain its session, and report its resources and " +
    "executions.",
  keys: AGENT_VERB_KEYS,
  notes: ["Repeat --label for several labels: --label zone=a --label rack=7."],
};

/** `rollcall agent`. Returns the exit code: 0 after SIGTERM or SIGINT, 1 for a failure, 2 for wrong usage. */
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
  // Import this module only when needed, because most agents run no work.
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
    // Treat SIGHUP as a request to reload. The agent of an `up` is in a separate session, so a closed terminal does
    // not signal it.
    ...(isOfUp && { hasTerminal: false }),
    // onConnected sends a message that the parent `up` waits for.
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
 * Load the configuration of an agent, for `rollcall agent` and for an `up` that starts one. Throws a UsageError with
 * all problems.
 */
export async function loadAgentConfig(
  args: Pick<Arguments, "file" | "flags">,
  shell: Pick<Shell, "env" | "cwd">,
  isOfUp: boolean,
): Promise<Config<AgentVerbConfig>> {
  const named = Object.keys(shell.env).some((name) => name.startsWith("ROLLCALL_"));
  const hasMore = named || configurationPath(shell, args.file) !== undefined;
  // Load the keys of other services only if there is a file that can contain them, because loading costs memory.
  const alsoKnown = hasMore ? (await import("../config/all-keys.ts")).ALL_KEYS : {};
  const settled = (values: AgentVerbConfig) => (isOfUp ? withTlsOfUp(values) : values);
  const check = (values: AgentVerbConfig) => checkAgentConfig(settled(values));
  const config = await loadConfiguration<AgentVerbConfig>(
    { keys: AGENT_VERB_KEYS, alsoKnown, check },
    { shell, file: args.file, flags: args.flags },
  );
  return { ...config, values: settled(config.values) };
}

/** A file in the state directory that contains the path of a keeper that runs as a separate service. */
const KEEPER_NOTE = "keeper-dir";

/**
 * The settings of an agent without executors, with its former keeper. Executions that are still running continue, and
 * the agent still reports them, even if all settings for work were removed.
 */
async function withKeeperOfBefore<T extends AgentConfig>(values: T, stateDirectory: string): Promise<T> {
  if (values["Work.Executors"].length > 0 || values["Work.KeeperDir"] !== undefined) return values;
  const noted = await readFile(join(stateDirectory, KEEPER_NOTE), "utf8").catch(() => undefined);
  return noted === undefined ? values : { ...values, "Work.KeeperDir": noted };
}

/** Whether executions may still run although no executors are configured. A keeper is then needed until they end. */
async function hasKept(stateDirectory: string, keeperDirectory: string | undefined): Promise<boolean> {
  if (keeperDirectory === undefined) {
    const executions = await readdir(join(stateDirectory, "keeper", "executions")).catch(() => []);
    return executions.length > 0;
  }
  // Check for the keeper's socket, because the agent cannot read its files.
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
 * End an agent of `up` when `up` is killed, because it would continue unseen and conflict with the next one. It sends
 * no goodbye, because the node did not leave deliberately: the node becomes unhealthy after its deadline, like a node
 * whose agent crashed, or stays healthy if `up` is soon back.
 */
function endWithParent(process: NodeJS.Process, log: Logger): void {
  // Do nothing without a channel to a parent: a person or service manager started the agent.
  if (process.connected === undefined) return;
  const end = () => {
    log.warn({}, "up has ended; exiting without a goodbye");
    process.exit(1);
  };
  // End now if the parent ended while this process was loading.
  if (process.connected) process.on("disconnect", end);
  else end();
}
