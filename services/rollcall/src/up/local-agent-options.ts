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

/** What decides how the local agent is started. */
export interface LocalAgentInput {
  readonly shell: Pick<Shell, "env" | "cwd">;
  readonly process: Pick<NodeJS.Process, "execPath" | "execArgv" | "argv">;
  /** What `up` was told on its own command line. */
  readonly args: Pick<Arguments, "flags" | "file">;
  readonly dataDirectory: string;
  /** HOST:PORT of the API. */
  readonly server: string;
  /** How it is reached when it speaks TLS; null for clear text. */
  readonly trust?: LocalTrust | null;
  readonly log: Logger;
}

/**
 * As packages start an agent, which makes little garbage: room for new objects grows to 16 MiB otherwise. It counts
 * after those of `up`, since the last one does.
 */
const SPARING_FLAG = "--max-semi-space-size=1";
/** One arena for all threads: each keeps some MB otherwise. */
const SPARING_ENV = { MALLOC_ARENA_MAX: "1" };

/** What bin/rollcall starts in a checkout. */
const BUILT = "/services/rollcall/bundle/src/start.cjs";

/** How this program is called from where the user is: "bin/rollcall" in the checkout, else "rollcall". */
export function programName({ argv }: Pick<NodeJS.Process, "argv">, cwd: string): string {
  const entry = argv[1] ?? "";
  if (!entry.endsWith(BUILT)) return "rollcall";
  const path = relative(cwd, `${entry.slice(0, -BUILT.length)}/bin/rollcall`);
  return path.startsWith("..") || !path.includes("/") ? "rollcall" : path;
}

/** Flags that mean the same to the agent. */
const SHARED_FLAGS: readonly string[] = ["log-level", "log-format"];
const LOG_KEYS = { "Log.Level": PROCESS_KEYS["Log.Level"], "Log.Format": PROCESS_KEYS["Log.Format"] };
/** The name of the example, which runs beside the agent of this `up`. */
const SECOND = "second";
const COMPUTE_KEY = /^(compute|work)\./i;
/** Where it works and whom it joins is settled: this is the agent of this `up`. */
const SETTLED_KEY = /^compute\.(server|statedir)$/i;

/** How `up` keeps its agent: the same program as its own, with what it was told about agents. */
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

/** The command with which a person runs another agent on this machine, beside the one of `up`. */
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

/** A command for any terminal of this user: with the settings that this process has from its environment. */
function commandOf({ shell, process, args }: Omit<LocalAgentInput, "log">, words: readonly string[]): string {
  const variables = agentVariables(shell.env, args.file === undefined);
  return [...variables, ...[programName(process, shell.cwd), ...words].map(quoted)].join(" ");
}

/** Assignments of the variables that set an agent. A secret is named, and its value is not shown. */
function agentVariables(env: Shell["env"], hasNoFile: boolean): readonly string[] {
  const known = environmentVariables({ ...agentKeys, ...LOG_KEYS });
  return Object.entries(env).flatMap(([name, value]) => {
    const key = known.get(name);
    if (!value || (key === undefined && !(hasNoFile && name === "ROLLCALL_CONFIG"))) return [];
    if (key !== undefined && SETTLED_KEY.test(key.path)) return [];
    return [`${name}=${key?.secret === true ? `"$${name}"` : quoted(value)}`];
  });
}

/** What the user says about the agent's trust counts more than what `up` knows. */
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

/** The flags of `up` that its agent gets as well. */
export function agentFlags(flags: Flags): Flags {
  const isAgents = (name: string) => SHARED_FLAGS.includes(name) || (COMPUTE_KEY.test(name) && !SETTLED_KEY.test(name));
  return Object.fromEntries(Object.entries(flags).filter(([name]) => isAgents(name)));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
