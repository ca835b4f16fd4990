import { createHash } from "node:crypto";
import { chmod, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  FaultWatch,
  type Logger,
  Loop,
  makeDirectory,
  type Running,
  StartError,
  startParts,
  startTasks,
  systemClock,
  type Task,
} from "@rollcall/process";
import { type CgroupHierarchy, type Limit, openCgroups } from "./cgroup/cgroup-hierarchy.ts";
import { CgroupWatch } from "./cgroup/cgroup-watch.ts";
import { DockerEngine } from "./docker/docker-engine.ts";
import { DockerExecutor } from "./docker/docker-executor.ts";
import { machineClock } from "./execution/keeper-services.ts";
import { Journal } from "./journal/journal.ts";
import { Keeper } from "./keeper.ts";
import { firstOwn, type KeeperPlaces, keeperPlaces, makeOwn } from "./keeper-places.ts";
import { describeIsolation } from "./launch/describe-isolation.ts";
import { type Isolation, probeIsolation } from "./launch/isolation.ts";
import type { WorkRules } from "./launch/permissions.ts";
import { canBecome, findAccount } from "./launch/prepare-launch.ts";
import { closeInherited } from "./machine/close-inherited.ts";
import { readBootId } from "./machine/process-name.ts";
import { ProcessExecutor } from "./process/process-program.ts";
import { SeenStamp } from "./seen-stamp.ts";
import type { KeeperFacts } from "./socket/keeper-connection.ts";
import { KeeperSocket } from "./socket/keeper-socket.ts";
import { UserIds } from "./users/user-ids.ts";

/** What a keeper is started with. */
export interface KeeperSettings extends Omit<WorkRules, "closedUserIds"> {
  /** The state directory of the agent whose machine it keeps. */
  readonly stateDirectory: string;
  /** The keeper's own directory, where it is a service of its own; null for one in the state directory. */
  readonly directory: string | null;
  /** Whether executions may run as the keeper's own user, who can read the agent's key: for development alone. */
  readonly mayBeOwnUser: boolean;
  /** Where the container engine listens, as DOCKER_HOST; null for the one that is found. */
  readonly dockerHost: string | null;
}

export interface StartKeeperOptions {
  readonly settings: KeeperSettings;
  /** Version of this program. */
  readonly version: string;
  /** Whether it ends when it has nothing to keep, and no agent to wait for. Default false. */
  readonly endsIdle?: boolean;
  /** How users of this machine are found. Default: as the machine does. */
  readonly findUser?: typeof findAccount;
  /** How cgroups are found. Default: as the machine has them. */
  readonly openCgroups?: (name: string) => Promise<CgroupHierarchy | null>;
  readonly log: Logger;
}

/** An agent that is restarted is back within this. */
const IDLE_MS = 10_000;

/** The digest of settings, by which an agent sees that a keeper was started with others. */
export function settingsDigest(settings: KeeperSettings): string {
  return createHash("sha256")
    .update(JSON.stringify(Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1))))
    .digest("hex");
}

/**
 * Start the keeper of this machine. `done` resolves when an agent has it retire. Rejects with StartError for what a
 * person must put right; without a user to run executions as it starts, keeps what runs, and starts nothing.
 */
export async function startKeeper(options: StartKeeperOptions): Promise<Running> {
  const { settings, version, endsIdle = false, findUser = findAccount, log } = options;
  if (process.platform !== "linux") throw new StartError("work runs on Linux alone");
  closeInherited();
  const places = await keeperPlaces(settings.stateDirectory, settings.directory);
  await makeDirectory(places.directory, 0o700);
  await chmod(places.directory, 0o700);
  if (settings.directory === null && !places.socket.startsWith(places.directory)) {
    await makeOwn(dirname(places.socket), 0o700);
  }
  if (places.isScratchTemporary) log.warn({ directory: places.scratch }, TEMPORARY_WARNING);
  const isolation = await probeIsolation();
  if (isolation.problem !== "") log.warn({ problem: isolation.problem }, "executions are not kept apart entirely");
  const userIds = ownRange(settings);
  const agent = await agentOf(settings);
  const closedUserIds = [...new Set([process.getuid?.() ?? 0, agent.userId])];
  const problemNow = (): Promise<string> => processProblem(settings, closedUserIds, findUser);
  let problem = await problemNow();
  if (problem !== "") log.error({ problem }, "processes are not offered");
  else if (settings.executors.includes("process") && isOwnUser(settings)) log.warn({}, OWN_USER_WARNING);
  const executors = (): readonly string[] => settings.executors.filter((one) => one !== "process" || problem === "");
  const rules: WorkRules = {
    ...settings,
    userIds,
    closedUserIds,
    get executors() {
      return executors();
    },
  };
  const open = options.openCgroups ?? openCgroups;
  const cgroups = await CgroupWatch.open({ open: () => open(places.name), clock: systemClock, log });
  const bootId = await readBootId();
  let retire = (): void => {};
  const retired = new Promise<void>((resolve) => {
    retire = resolve;
  });
  const running = await startParts(async (parts) => {
    const clock = machineClock;
    const journal = await Journal.open(places.directory);
    const seen = await SeenStamp.open(places.directory, bootId, clock);
    const engine = new DockerEngine({ host: settings.dockerHost, log });
    const hasDocker = settings.executors.includes("docker");
    // One that hangs holds nothing else up.
    if (hasDocker) await Promise.race([engine.look(), systemClock.sleep(ENGINE_LIMIT_MS, NEVER)]);
    const watch = new FaultWatch({ directories: [places.directory, places.scratch], clock: systemClock, log });
    const keeper = parts.add(
      await Keeper.open({
        ...{ journal, seen, clock, bootId, log },
        executors: {
          process: new ProcessExecutor({
            ...{ rules, isolation, scratch: places.scratch },
            get cgroups() {
              return cgroups.current;
            },
            userIds: userIds && (await openUserIds(userIds, { places, settings, isolation, log })),
          }),
          docker: new DockerExecutor({ engine, rules, keeper: places.name, clock, log }),
        },
      }),
    );
    const facts = (): KeeperFacts => ({
      version,
      settingsDigest: settingsDigest(settings),
      pid: process.pid,
      users: [...settings.users],
      directories: [...settings.directories],
      secrets: settings.secretGrants.map(({ name, grants }) => ({ name, grants: [...grants] })),
      ...toOffer({ executors: executors(), problem, limits: limitsOf(cgroups.current, userIds !== null) }, engine),
      ...(executors().includes("process") && {
        isolation: describeIsolation({ rules, isolation, hasCgroups: cgroups.current !== null }),
      }),
      conditions: [...watch.faults, ...(hasDocker && engine.isUnresponsive ? [ENGINE_UNRESPONSIVE] : [])],
    });
    const onRetire = (): void => retire();
    const { socket: path } = places;
    const given = settings.directory === null ? null : { from: join(places.directory, "socket"), ...agent };
    const socket = parts.add(await KeeperSocket.open({ path, given, keeper, facts, onRetire, log }));
    engine.subscribe(() => socket.announce());
    watch.subscribe(() => socket.announce());
    cgroups.subscribe(() => socket.announce());
    parts.add(startTasks([watch.task, cgroups.task], { log, clock: systemClock }));
    if (hasDocker) parts.add(startTasks([engine.task], { log, clock: systemClock }));
    if (problem !== "") {
      const onSolved = (): void => {
        problem = "";
        log.info({}, "processes are offered");
        socket.announce();
      };
      parts.add(startTasks([solveTask(problemNow, onSolved)], { log, clock: systemClock }));
    }
    if (endsIdle) parts.add(startTasks([idleTask(keeper, socket, onRetire)], { log, clock: systemClock }));
    const { limits, executors: offered } = facts();
    log.info({ version, socket: path, directory: places.scratch, limits, executors: offered }, "keeper started");
    return {};
  });
  return { ...running, done: retired };
}

/** After a boot the user's directory service can come up later than the keeper. */
const SOLVE_EVERY_MS = 3_000;

/** Look again whether processes can be started, until they can. */
function solveTask(problemNow: () => Promise<string>, onSolved: () => void): Task {
  return {
    name: "offer-processes",
    run: async (signal) => {
      while ((await problemNow()) !== "") await systemClock.sleep(SOLVE_EVERY_MS, signal);
      if (!signal.aborted) onSolved();
    },
  };
}

/** How long an engine may take to be in the first greeting. */
const ENGINE_LIMIT_MS = 2_000;
const NEVER = new AbortController().signal;

const ENGINE_UNRESPONSIVE = {
  reason: "ENGINE_UNRESPONSIVE",
  message: "the container engine takes connections and does not answer: see whether it is stopped or overloaded",
};

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

/** The range of user ids for executions; null when executions do not get their own. */
function ownRange({ user, userIds }: KeeperSettings): readonly number[] | null {
  return user === null && isRoot() ? userIds : null;
}

/** Whether executions run as the keeper's own user, which is never root. */
function isOwnUser({ user, mayBeOwnUser }: KeeperSettings): boolean {
  return user === null && mayBeOwnUser && !isRoot();
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** What is enforced for all processes that the keeper starts. */
function limitsOf(cgroups: CgroupHierarchy | null, hasOwnUsers: boolean): readonly Limit[] {
  const limits = cgroups?.limits ?? [];
  // The limit of processes per user bounds an execution that has its own user id.
  return hasOwnUsers && !limits.includes("pids") ? [...limits, "pids"] : limits;
}

/** The directory in which all keepers of the machine record the user ids that they gave. */
const SYSTEM_USER_IDS = "/var/lib/rollcall-user-ids";

/** Directories in which any user can leave files. */
const SHARED_DIRECTORIES = ["/tmp", "/var/tmp", "/dev/shm", "/run/lock"] as const;

async function openUserIds(
  [first = 0, last = 0]: readonly number[],
  options: {
    readonly places: KeeperPlaces;
    readonly settings: KeeperSettings;
    readonly isolation: Isolation;
    readonly log: Logger;
  },
): Promise<UserIds> {
  const { places, settings, isolation, log } = options;
  const directory = await firstOwn([SYSTEM_USER_IDS, join(places.directory, "user-ids")]);
  // Executions in namespaces have their own of all others.
  const shared = [...(isolation.hasNamespaces ? ["/run/lock"] : SHARED_DIRECTORIES), ...settings.directories];
  return new UserIds({ first, last, directory, shared, log });
}

const OWN_USER_WARNING =
  "EXECUTIONS RUN AS THE AGENT'S OWN USER and can read its key: " +
  "this is for development, never for a machine that others use";

/** What this machine offers at the moment: a container engine may come and go. */
function toOffer(
  own: { readonly executors: readonly string[]; readonly problem: string; readonly limits: readonly Limit[] },
  engine: DockerEngine,
): Pick<KeeperFacts, "executors" | "limits" | "problem"> {
  const { facts } = engine;
  const executors = own.executors.filter((one) => one !== "docker" || facts !== null);
  const wantsEngine = own.executors.includes("docker");
  const limits = [
    ...(executors.includes("process") ? [own.limits] : []),
    ...(executors.includes("docker") && facts !== null ? [facts.limits] : []),
  ];
  // Placement knows of one kind of node: a limit counts where all its executors have it.
  const [first = [], ...others] = limits;
  const problems = [own.problem, wantsEngine ? engine.problem : ""].filter((one) => one !== "");
  return {
    executors,
    limits: first.filter((limit) => others.every((more) => more.includes(limit))),
    problem: problems.join("; "),
  };
}

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

/** Why no process can be started; empty when one can, and where none is wanted. */
async function processProblem(
  settings: KeeperSettings,
  closedUserIds: readonly number[],
  findUser: typeof findAccount,
): Promise<string> {
  const { executors, user } = settings;
  if (!executors.includes("process")) return "";
  const range = ownRange(settings);
  if (range !== null) {
    const [first = 0] = range;
    if (await canBecome({ name: null, uid: first, gid: first })) return "";
    return `executions cannot have user ids such as ${first}: setpriv of util-linux is missing, or not allowed`;
  }
  if (user === null) {
    if (isOwnUser(settings)) return "";
    return "Work.User is not set, and executions never run as the agent's own user";
  }
  const account = await findUser(user);
  if (account === null) return `Work.User names ${user}, and there is no such user`;
  if (account.uid === 0) return "Work.User is root, and executions never run as root";
  if (closedUserIds.includes(account.uid)) return "Work.User is the agent's own user, who can read its key";
  if (!(await canBecome(account))) {
    return process.getuid?.() === 0
      ? `executions cannot become ${user}: setpriv of util-linux is missing or not allowed`
      : `the agent is not root, and so executions cannot become ${user}`;
  }
  return "";
}
