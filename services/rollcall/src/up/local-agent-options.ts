import { join, relative } from "node:path";
import { agentKeys } from "@rollcall/agent";
import type { Shell } from "@rollcall/cli";
import { environmentVariables, type Flags } from "@rollcall/config";
import { type Logger, systemClock } from "@rollcall/process";
import { PROCESS_KEYS } from "../config/process-keys.ts";
import type { Arguments } from "../config/read-arguments.ts";
import { withBundledLibraries } from "../start/bundled-libraries.ts";
import type { LocalAgentOptions } from "./local-agent.ts";
import type { LocalTrust } from "./open-up-tls.ts";

/** The inputs that determine how the local agent is started. */
export interface LocalAgentInput {
  readonly shell: Pick<Shell, "env" | "cwd">;
  readonly process: Pick<NodeJS.Process, "execPath" | "execArgv" | "argv">;
  /** The command line of `up`. */
  readonly args: Pick<Arguments, "flags" | "file">;
  readonly dataDirectory: string;
  /** HOST:PORT of the API. */
  readonly server: string;
  /** How clients verify the API over TLS; null for clear text. */
  readonly trust?: LocalTrust | null;
  readonly log: Logger;
}

/**
 * Limits the space for new objects, as in packages. An agent creates little garbage, but that space would otherwise
 * grow to 16 MiB. The flag comes after those of `up`, because the last one wins.
 */
const SPARING_FLAG = "--max-semi-space-size=1";
/** The variable that makes all threads share one malloc arena, because otherwise each thread keeps some MB. */
const SPARING_ENV = { MALLOC_ARENA_MAX: "1" };

/** The file that bin/rollcall starts in a checkout. */
const BUILT = "/services/rollcall/bundle/src/start.cjs";

/**
 * The command that runs this program from the user's directory: "bin/rollcall" in the checkout, otherwise "rollcall".
 */
export function programName({ argv }: Pick<NodeJS.Process, "argv">, cwd: string): string {
  const entry = argv[1] ?? "";
  if (!entry.endsWith(BUILT)) return "rollcall";
  const path = relative(cwd, `${entry.slice(0, -BUILT.length)}/bin/rollcall`);
  return path.startsWith("..") || !path.includes("/") ? "rollcall" : path;
}

/** Flags of `up` that have the same meaning for the agent. */
const SHARED_FLAGS: readonly string[] = ["log-level", "log-format"];
const LOG_KEYS = { "Log.Level": PROCESS_KEYS["Log.Level"], "Log.Format": PROCESS_KEYS["Log.Format"] };
/** The name of the second agent that the banner suggests. */
const SECOND = "second";
const COMPUTE_KEY = /^(compute|work)\./i;
/** Keys that `up` sets itself for its agent. */
const SETTLED_KEY = /^compute\.(server|statedir)$/i;

/** How `up` runs its agent: with the same program, and with its settings that apply to agents. */
export function localAgentOptions(input: LocalAgentInput): LocalAgentOptions {
  const { shell, process, dataDirectory, log } = input;
  const stateDirectory = join(dataDirectory, "agent");
  const identity = ["--server", addressOf(input), "--state-dir", stateDirectory];
  const args = ["agent", ...forwarded(input.args), ...trusting(input), ...identity];
  return {
    command: {
      program: process.execPath,
      args: [...process.execArgv, SPARING_FLAG, process.argv[1] ?? "", ...args],
    },
    commandForPeople: commandOf(input, args),
    stateDirectory,
    env: withBundledLibraries({ ...SPARING_ENV, ...shell.env }, process.execPath),
    log,
    clock: systemClock,
    random: Math.random,
  };
}

/** The command for a user to run another agent on this machine. */
export function secondAgentCommand(input: Omit<LocalAgentInput, "log">): string {
  const { args, dataDirectory } = input;
  const isName = (path: string) => path.toLowerCase() === "compute.name";
  const flags = Object.fromEntries(Object.entries(args.flags).filter(([path]) => !isName(path)));
  const own = { ...input, args: { ...args, flags } };
  const identity = ["--name", SECOND, "--state-dir", join(dataDirectory, SECOND)];
  return commandOf(own, ["agent", ...forwarded(own.args), "--server", addressOf(own), ...trusting(own), ...identity]);
}

function addressOf({ trust, server }: Pick<LocalAgentInput, "trust" | "server">): string {
  return trust ? `https://${server}` : server;
}

/** A command that works in any terminal of this user. It contains this process's settings from the environment. */
function commandOf({ shell, process, args }: Omit<LocalAgentInput, "log">, words: readonly string[]): string {
  const variables = agentVariables(shell.env, args.file === undefined);
  return [...variables, ...[programName(process, shell.cwd), ...words].map(quoted)].join(" ");
}

/** Assignments of the variables that configure an agent. Secrets appear by name without their values. */
function agentVariables(env: Shell["env"], hasNoFile: boolean): readonly string[] {
  const known = environmentVariables({ ...agentKeys, ...LOG_KEYS });
  return Object.entries(env).flatMap(([name, value]) => {
    const key = known.get(name);
    if (!value || (key === undefined && !(hasNoFile && name === "ROLLCALL_CONFIG"))) return [];
    if (key !== undefined && SETTLED_KEY.test(key.path)) return [];
    return [`${name}=${key?.secret === true ? `"$${name}"` : quoted(value)}`];
  });
}

/** The flags that make the agent trust `up`. The user's settings for the agent override them. */
function trusting({ trust, args }: Pick<LocalAgentInput, "trust" | "args">): readonly string[] {
  const isSaid = (path: string) => Object.keys(args.flags).some((name) => name.toLowerCase() === path.toLowerCase());
  const { caFile = null, serverName = null } = trust ?? {};
  return [
    ...(caFile === null || isSaid("Compute.TLS.CAFile") ? [] : ["--ca-file", caFile]),
    ...(serverName === null || isSaid("Compute.TLS.ServerName") ? [] : ["--tls-server-name", serverName]),
  ];
}

function forwarded({ flags, file }: LocalAgentInput["args"]): readonly string[] {
  const settings = Object.entries(agentFlags(flags)).flatMap(([name, value]) =>
    SHARED_FLAGS.includes(name) ? [`--${name}`, String(value)] : ["--set", `${name}=${value}`],
  );
  return file === undefined ? settings : ["--config", file, ...settings];
}

/** The flags of `up` that its agent also gets. */
export function agentFlags(flags: Flags): Flags {
  const isAgents = (name: string) => SHARED_FLAGS.includes(name) || (COMPUTE_KEY.test(name) && !SETTLED_KEY.test(name));
  return Object.fromEntries(Object.entries(flags).filter(([name]) => isAgents(name)));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
