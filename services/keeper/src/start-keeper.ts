import { createHash } from "node:crypto";
import { chmod, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type Logger,
  Loop,
  makeDirectory,
  type Running,
  StartError,
  startParts,
  startTasks,
  systemClock,
} from "@rollcall/process";
import { openCgroups } from "./cgroup/cgroup-hierarchy.ts";
import { machineClock } from "./execution/keeper-services.ts";
import { Journal } from "./journal/journal.ts";
import { Keeper } from "./keeper.ts";
import { keeperPlaces, makeOwn } from "./keeper-places.ts";
import { canBecome, findAccount } from "./launch/accounts.ts";
import type { WorkRules } from "./launch/permissions.ts";
import { readBootId } from "./machine/process-name.ts";
import { SeenStamp } from "./seen-stamp.ts";
import { KeeperSocket } from "./socket/keeper-socket.ts";

/** What a keeper is started with. */
export interface KeeperSettings extends Omit<WorkRules, "closedUserIds"> {
  /** The state directory of the agent whose machine it keeps. */
  readonly stateDirectory: string;
  /** The keeper's own directory, where it is a service of its own; null for one in the state directory. */
  readonly directory: string | null;
  /** Whether executions may run as the keeper's own user, who can read the agent's key: for development alone. */
  readonly mayBeOwnUser: boolean;
}

export interface StartKeeperOptions {
  readonly settings: KeeperSettings;
  /** Version of this program. */
  readonly version: string;
  /** Whether it ends when it has nothing to keep, and no agent to wait for. Default false. */
  readonly endsIdle?: boolean;
  readonly log: Logger;
}

/** An agent that is restarted is back within this. */
const IDLE_MS = 10_000;

/** The digest of settings, by which an agent sees that a keeper was started with others. */
export function settingsDigest(settings: KeeperSettings): string {
  return createHash("sha256")
    .update(JSON.stringify(settings, Object.keys(settings).sort()))
    .digest("hex");
}

/**
 * Start the keeper of this machine. `done` resolves when an agent has it retire. Rejects with StartError for what a
 * person must put right; without a user to run executions as it starts, keeps what runs, and starts nothing.
 */
export async function startKeeper(options: StartKeeperOptions): Promise<Running> {
  const { settings, version, endsIdle = false, log } = options;
  if (process.platform !== "linux") throw new StartError("work runs on Linux alone");
  const places = await keeperPlaces(settings.stateDirectory, settings.directory);
  await makeDirectory(places.directory, 0o700);
  await chmod(places.directory, 0o700);
  if (settings.directory === null && !places.socket.startsWith(places.directory)) {
    await makeOwn(dirname(places.socket), 0o700);
  }
  if (places.isScratchTemporary) log.warn({ directory: places.scratch }, TEMPORARY_WARNING);
  const agent = await agentOf(settings);
  const closedUserIds = [...new Set([process.getuid?.() ?? 0, agent.userId])];
  const problem = await problemOf(settings, closedUserIds);
  if (problem !== null) log.error({ problem }, "no executor is offered");
  else if (settings.user === null && settings.executors.length > 0) log.warn({}, OWN_USER_WARNING);
  const rules: WorkRules = { ...settings, closedUserIds, executors: problem === null ? settings.executors : [] };
  const cgroups = await openCgroups(places.name);
  const bootId = await readBootId();
  let retire = (): void => {};
  const retired = new Promise<void>((resolve) => {
    retire = resolve;
  });
  const running = await startParts(async (parts) => {
    const clock = machineClock;
    const journal = await Journal.open(places.directory);
    const seen = await SeenStamp.open(places.directory, bootId, clock);
    const { scratch } = places;
    const options = { journal, cgroups, rules, scratch, seen, clock, bootId, log };
    const keeper = parts.add(await Keeper.open(options));
    const facts = {
      version,
      settingsDigest: settingsDigest(settings),
      pid: process.pid,
      executors: [...rules.executors],
      limits: [...(cgroups?.limits ?? [])],
      users: [...settings.users],
      directories: [...settings.directories],
      problem: problem ?? "",
    };
    const onRetire = (): void => retire();
    const { socket: path } = places;
    const given = settings.directory === null ? null : { from: join(places.directory, "socket"), ...agent };
    const socket = parts.add(await KeeperSocket.open({ path, given, keeper, facts, onRetire, log }));
    if (endsIdle) parts.add(startTasks([idleTask(keeper, socket, onRetire)], { log, clock: systemClock }));
    const { limits, executors } = facts;
    log.info({ version, socket: path, directory: places.scratch, limits, executors }, "keeper started");
    return {};
  });
  return { ...running, done: retired };
}

function idleTask(keeper: Keeper, socket: KeeperSocket, end: () => void): Loop {
  let sinceMs = machineClock.nowMs();
  return new Loop({
    name: "end-idle",
    clock: systemClock,
    everyMs: IDLE_MS / 10,
    turn: async () => {
      const isBusy = socket.connections > 0 || keeper.records().some(({ state }) => state.phase.kind !== "ended");
      if (isBusy) sinceMs = machineClock.nowMs();
      else if (machineClock.nowMs() - sinceMs > IDLE_MS) end();
    },
  });
}

const OWN_USER_WARNING =
  "EXECUTIONS RUN AS THE AGENT'S OWN USER and can read its key: " +
  "this is for development, never for a machine that others use";

const TEMPORARY_WARNING =
  "executions have their directories among temporary files, which the system may remove: " +
  "give the agent a state directory whose parents other users may pass through";

/** Who the agent is: the owner of its state directory. */
async function agentOf({ stateDirectory, directory }: KeeperSettings): Promise<{ readonly userId: number }> {
  const found = await stat(stateDirectory).catch(() => null);
  if (found !== null) return { userId: found.uid };
  if (directory !== null) throw new StartError(`there is no ${stateDirectory}: the agent has to make it first`);
  return { userId: process.getuid?.() ?? 0 };
}

/** Why no execution can be started; null when one can. */
async function problemOf(settings: KeeperSettings, closedUserIds: readonly number[]): Promise<string | null> {
  const { directory, executors, user, mayBeOwnUser } = settings;
  // It looks after what an earlier one has left.
  if (executors.length === 0) return null;
  const unknown = executors.filter((one) => one !== "process");
  if (unknown.length > 0) return `there is no executor ${unknown.join(", ")}`;
  if (user === null) {
    // The own user of a service of its own is root.
    return mayBeOwnUser && directory === null
      ? null
      : "Work.User is not set, and executions never run as the agent's own user";
  }
  const account = await findAccount(user);
  if (account === null) return `Work.User names ${user}, and there is no such user`;
  if (account.uid === 0) return "Work.User is root, and executions never run as root";
  if (closedUserIds.includes(account.uid)) return "Work.User is the agent's own user, who can read its key";
  if (!(await canBecome(account))) {
    return process.getuid?.() === 0
      ? `executions cannot become ${user}: setpriv of util-linux is missing or not allowed`
      : `the agent is not root, and so executions cannot become ${user}`;
  }
  return null;
}
