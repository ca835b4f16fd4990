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
import { SecretNames } from "./launch/secret-names.ts";
import { closeInherited } from "./machine/close-inherited.ts";
import { readBootId } from "./machine/process-name.ts";
import { ProcessExecutor } from "./process/process-program.ts";
import { SeenStamp } from "./seen-stamp.ts";
import type { KeeperFacts } from "./socket/keeper-connection.ts";
import { KeeperSocket } from "./socket/keeper-socket.ts";
import { UserIds } from "./users/user-ids.ts";

export interface KeeperSettings extends Omit<WorkRules, "closedUserIds"> {
  /** The state directory of the agent on this machine. */
  readonly stateDirectory: string;
  /** The keeper's own directory if it is a separate service; null for a directory in the state directory. */
  readonly directory: string | null;
  /** Whether executions can run as the keeper's own user, who can read the agent's key. For development only. */
  readonly mayBeOwnUser: boolean;
  /** Where the container engine listens, in the form of DOCKER_HOST; null to search for one. */
  readonly dockerHost: string | null;
}

export interface StartKeeperOptions {
  readonly settings: KeeperSettings;
  /** Version of this program. */
  readonly version: string;
  /** Whether the keeper exits when it has no executions and no agent to wait for. Default false. */
  readonly endsIdle?: boolean;
  /** How to find users of this machine. Default: in the machine's user database. */
  readonly findUser?: typeof findAccount;
  /** How to find cgroups. Default: those of the machine. */
  readonly openCgroups?: (name: string) => Promise<CgroupHierarchy | null>;
  readonly log: Logger;
}

/** How long an idle keeper waits before it exits. A restarted agent reconnects within this time. */
const IDLE_MS = 10_000;

/** A digest of the settings. An agent compares it to detect a keeper that was started with other settings. */
export function settingsDigest(settings: KeeperSettings): string {
  return createHash("sha256")
    .update(JSON.stringify(Object.entries(settings).sort(([one], [other]) => (one < other ? -1 : 1))))
    .digest("hex");
}

/**
 * Start the keeper of this machine. `done` resolves when an agent asks the keeper to retire. Rejects with StartError
 * for a problem that an operator must fix. Without a user for executions, the keeper still starts and manages what
 * runs, but starts no executions.
 */
export async function startKeeper(options: StartKeeperOptions): Promise<Running> {
  const { settings, version, endsIdle = false, findUser = findAccount, log } = options;
  if (process.platform !== "linux") throw new StartError("work only runs on Linux");
  closeInherited();
  const places = await keeperPlaces(settings.stateDirectory, settings.directory);
  await makeDirectory(places.directory, 0o700);
  await chmod(places.directory, 0o700);
  if (settings.directory === null && !places.socket.startsWith(places.directory)) {
    await makeOwn(dirname(places.socket), 0o700);
  }
  if (places.isScratchTemporary) log.warn({ directory: places.scratch }, TEMPORARY_WARNING);
  const isolation = await probeIsolation();
  if (isolation.problem !== "")
    log.warn({ problem: isolation.problem }, "executions are not fully isolated from each other");
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
    // Limit the wait, because a hanging engine must not delay the start.
    if (hasDocker) await Promise.race([engine.look(), systemClock.sleep(ENGINE_LIMIT_MS, NEVER)]);
    const secrets = new SecretNames(settings, systemClock);
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
      secrets: secrets.secrets.map(({ name, grants }) => ({ name, grants: [...grants] })),
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
    secrets.subscribe(() => socket.announce());
    cgroups.subscribe(() => socket.announce());
    parts.add(startTasks([watch.task, cgroups.task, secrets.task], { log, clock: systemClock }));
    if (hasDocker) parts.add(startTasks([engine.task], { log, clock: systemClock }));
    if (problem !== "") {
      const onSolved = (): void => {
        problem = "";
        log.info({}, "process executor is available");
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

/**
 * Time between two checks of whether processes can be started. After a boot, the directory service that knows the
 * user can start later than the keeper.
 */
const SOLVE_EVERY_MS = 3_000;

/** Check repeatedly whether processes can be started, until they can. */
function solveTask(problemNow: () => Promise<string>, onSolved: () => void): Task {
  return {
    name: "offer-processes",
    run: async (signal) => {
      while ((await problemNow()) !== "") await systemClock.sleep(SOLVE_EVERY_MS, signal);
      if (!signal.aborted) onSolved();
    },
  };
}

/** How long to wait for the engine before the first greeting. */
const ENGINE_LIMIT_MS = 2_000;
const NEVER = new AbortController().signal;

const ENGINE_UNRESPONSIVE = {
  reason: "ENGINE_UNRESPONSIVE",
  message: "the container engine accepts connections but does not respond: check whether it is stopped or overloaded",
};

function idleTask(keeper: Keeper, socket: KeeperSocket, end: () => void): Loop {
  let sinceMs = machineClock.nowMs();
  return new Loop({
    name: "end-idle",
    clock: systemClock,
    everyMs: IDLE_MS / 10,
    turn: async () => {
      const isBusy = socket.connections > 0 || keeper.isBusy;
      if (isBusy) sinceMs = machineClock.nowMs();
      else if (machineClock.nowMs() - sinceMs > IDLE_MS) end();
    },
  });
}

/** The range of user ids for executions; null if executions do not have their own user ids. */
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

/** The limits that are enforced for all processes that the keeper starts. */
function limitsOf(cgroups: CgroupHierarchy | null, hasOwnUsers: boolean): readonly Limit[] {
  const limits = cgroups?.limits ?? [];
  // If each execution has its own user id, the kernel's limit of processes per user limits each execution.
  return hasOwnUsers && !limits.includes("pids") ? [...limits, "pids"] : limits;
}

/** Where all keepers of the machine record the user ids that are in use. */
const SYSTEM_USER_IDS = "/var/lib/rollcall-user-ids";

/** Directories where any user can leave files. */
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
  // With namespaces, search only /run/lock, because executions have their own copies of all other shared directories.
  const shared = [...(isolation.hasNamespaces ? ["/run/lock"] : SHARED_DIRECTORIES), ...settings.directories];
  return new UserIds({ first, last, directory, shared, clock: systemClock, log });
}

const OWN_USER_WARNING =
  "EXECUTIONS RUN AS THE AGENT'S OWN USER and can read its key: " +
  "use this for development only, never on a machine that others use";

/** The machine's current offer. A container engine can appear and disappear. */
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
  // Offer a limit only if all executors enforce it, because placement does not distinguish the executors of a node.
  const [first = [], ...others] = limits;
  const problems = [own.problem, wantsEngine ? engine.problem : ""].filter((one) => one !== "");
  return {
    executors,
    limits: first.filter((limit) => others.every((more) => more.includes(limit))),
    problem: problems.join("; "),
  };
}

const TEMPORARY_WARNING =
  "executions have their directories in a temporary directory, where the system may remove them: " +
  "give the agent a state directory whose parent directories all users can enter";

/** The agent's user, who owns the state directory. */
async function agentOf({ stateDirectory, directory }: KeeperSettings): Promise<{ readonly userId: number }> {
  const found = await stat(stateDirectory).catch(() => null);
  if (found !== null) return { userId: found.uid };
  if (directory !== null)
    throw new StartError(`${stateDirectory} does not exist: start the agent first, it creates it`);
  return { userId: process.getuid?.() ?? 0 };
}

/** Why no process can be started; empty if processes can be started or are not wanted. */
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
    return `executions cannot run with user ids such as ${first}: setpriv of util-linux is missing or not allowed`;
  }
  if (user === null) {
    if (isOwnUser(settings)) return "";
    return "Work.User is not set, but executions never run as the agent's own user";
  }
  const account = await findUser(user);
  if (account === null) return `Work.User names ${user}, but there is no such user`;
  if (account.uid === 0) return "Work.User is root, but executions never run as root";
  if (closedUserIds.includes(account.uid)) return "Work.User is the agent's own user, who can read its key";
  if (!(await canBecome(account))) {
    return process.getuid?.() === 0
      ? `executions cannot run as ${user}: setpriv of util-linux is missing or not allowed`
      : `executions cannot run as ${user} because the agent is not root`;
  }
  return "";
}
