import { execFile } from "node:child_process";
import { type FSWatcher, watch } from "node:fs";
import { chmod, mkdir, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "@rollcall/process";
import { Cgroup } from "../cgroup/cgroup.ts";
import type { CgroupHierarchy } from "../cgroup/cgroup-hierarchy.ts";
import { readCgroup, saveCgroup } from "../cgroup/cgroup-record.ts";
import { ownerOfPort, type PortOwner } from "../check/port-owner.ts";
import { tryCommand } from "../check/try-command.ts";
import { type CheckResult, tryPort } from "../check/try-port.ts";
import type { Executor, Launch, Program, ProgramContext, ProgramStatus } from "../execution/executor.ts";
import { entering, type Isolation, unsharing } from "../launch/isolation.ts";
import { becoming, programScript } from "../launch/launch-script.ts";
import { type LaunchServices, ownUserId, type PreparedCommand, prepareLaunch } from "../launch/prepare-launch.ts";
import { exitWallMs, readInit, readShim, releaseShim, type ShimNamespaces, startShim } from "../launch/shim.ts";
import { evaluateShim } from "../launch/shim-facts.ts";
import { isAlive, type ProcessName, processesOfSession } from "../machine/process-name.ts";
import { killUser, otherProcesses, processesOfExecution, processesOfUser } from "../machine/user-processes.ts";
import { OutputPump } from "../output/output-pump.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";

/** Dependencies of a process. */
export interface ProcessServices extends LaunchServices {
  /** Where to create the cgroups of new executions; null if that is not possible. The value can change. */
  readonly cgroups: CgroupHierarchy | null;
  readonly isolation: Isolation;
}

const LOOPBACK = "127.0.0.1";

const run = promisify(execFile);
const LIMIT_MS = 600_000;

/** The folder in an execution's directory that contains its own /tmp and /var/tmp. */
const PRIVATE = "private";

/** Directories that all users of a machine share and that executions have their own copies of. */
const SHARED_DIRECTORIES = ["/tmp", "/var/tmp"] as const;

/**
 * Maximum number of passes that kill the processes of an execution. Processes can fork during a pass, and the next pass
 * kills their children.
 */
const MOST_PASSES = 50;
const PASS_PAUSE_MS = 100;

/** A process that a shim supervises. */
class ProcessProgram implements Program {
  readonly #services: ProcessServices;
  readonly #context: ProgramContext<ProcessPlan>;
  /** The cgroup that the program was launched in; undefined until that is known. */
  #cgroup: Cgroup | null | undefined;
  #child: ProcessName | null = null;
  #watcher: FSWatcher | null = null;
  #isClosed = false;

  constructor(services: ProcessServices, context: ProgramContext<ProcessPlan>) {
    this.#services = services;
    this.#context = context;
  }

  async launch(): Promise<Launch> {
    const { identity, plan, directory } = this.#context;
    const prepared = await prepareLaunch(identity, plan, this.#services);
    if (!prepared.ok) return prepared;
    const { cgroups } = this.#services;
    await saveCgroup(directory, cgroups);
    const cgroup = cgroups === null ? null : new Cgroup(cgroups, identity.id);
    this.#cgroup = cgroup;
    await cgroup?.create(plan);
    const program = join(directory, "program");
    // Replace the file instead of changing it, because a shim that a previous keeper started may still be reading it.
    await writeFile(`${program}.new`, programScript(prepared.command), { mode: 0o600 });
    await rename(`${program}.new`, program);
    await startShim({
      directory,
      groupId: prepared.account?.gid ?? null,
      becoming: this.#becoming(prepared, cgroup),
      cgroups: cgroup?.places ?? [],
      namespaces: await this.#namespacesFor(prepared, cgroup),
    });
    this.#observe();
    return { ok: true };
  }

  /** Does nothing, because starting a shim does not wait for anything. */
  abandon(): void {}

  async look(isLate: boolean): Promise<ProgramStatus> {
    const { directory, isOfThisBoot } = this.#context;
    const facts = await readShim(directory);
    if (facts.childLife === "alive") this.#child = facts.child;
    if (isOfThisBoot && facts.hasStarted && facts.shim !== "unknown") {
      this.#observe();
      await this.#pump();
    }
    const programStatus = evaluateShim(facts, isLate);
    switch (programStatus.kind) {
      case "not-launched":
      case "wait":
      case "launch-failed":
        return programStatus;
      case "runs":
        this.#child = programStatus.child;
        return { kind: "runs", about: "" };
      case "exited": {
        const memoryKill = (await (await this.#launchedCgroup())?.wasOutOfMemory()) ?? { kind: "no" };
        const exit = programStatus.exit && { ...programStatus.exit, memoryKill };
        return { kind: "exited", exit, wallMs: await exitWallMs(directory), about: "" };
      }
    }
  }

  async checkAfterEnd(): Promise<void> {
    // Read the rest of the output, because the previous keeper may have been killed before it released the shim.
    if ((await readShim(this.#context.directory)).shim === "alive") await this.#pump();
  }

  /** Send a signal to the program's process group, or only to the program while it does not lead a group yet. */
  async signal(signal: string): Promise<void> {
    const child = this.#child;
    if (child === null || !(await isAlive(child))) return;
    sendSignal(-child.pid, signal) || sendSignal(child.pid, signal);
  }

  async kill(): Promise<void> {
    const cgroup = await this.#existingCgroup();
    if (cgroup !== null) return cgroup.kill();
    const { directory, isOfThisBoot } = this.#context;
    if (!isOfThisBoot) return;
    const [init, userId] = [await readInit(directory), await this.#ownUserId()];
    if (init !== null) sendSignal(init.pid, "SIGKILL");
    if (userId !== null) await killUser(userId);
    if (init === null && userId === null) await this.#killMembers();
  }

  async check(): Promise<CheckResult> {
    const { identity, plan } = this.#context;
    const { probe, probeTimeoutMs: timeoutMs } = plan;
    if (probe === null) return { passed: true, message: "" };
    if (probe.kind !== "command") {
      const ownerOf = (port: number) => this.#ownerOf(port);
      return tryPort(probe, { host: LOOPBACK, ownerOf, ports: identity.ports, timeoutMs });
    }
    const prepared = await prepareLaunch(identity, { ...plan, argv: probe.argv }, this.#services);
    if (!prepared.ok) return { passed: false, message: "its command cannot be prepared" };
    const init = await readInit(this.#context.directory);
    const entered = init === null ? [] : entering(init.pid, prepared.isOwn);
    const cgroup = await this.#existingCgroup();
    const words = [...entered, ...this.#becoming(prepared, cgroup)];
    return tryCommand(prepared.command, { timeoutMs, cgroups: cgroup?.places ?? [], words });
  }

  async #ownerOf(port: number): Promise<PortOwner> {
    const cgroup = await this.#existingCgroup();
    if (cgroup !== null) return ownerInCgroup(port, cgroup);
    const members = await this.#members();
    if (members === null) return { kind: "unknown", why: "the processes of the execution are not known yet" };
    const owner = await ownerOfPort(port, members.pids);
    // The result is unknown, because a process that has left the session and changed its environment is not recognized
    // as part of the execution.
    if (owner.kind === "other" && !members.areAll) {
      return {
        kind: "unknown",
        why: "no process of the execution's session listens there, and the execution has no cgroup",
      };
    }
    return owner;
  }

  async release(): Promise<boolean> {
    const { directory } = this.#context;
    this.close();
    await releaseShim(directory);
    // Delete the job's command and environment, because no keeper starts an ended execution again.
    await rm(join(directory, "program"), { force: true });
    const cgroup = await this.#existingCgroup();
    const isNoneLeft = cgroup === null ? await this.#killUntilNone() : await cgroup.end();
    if (isNoneLeft) await removeTree(join(directory, PRIVATE));
    return isNoneLeft;
  }

  async remove(): Promise<void> {
    await removeTree(this.#home);
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
  }

  /** The words that run a command as another user. They also limit the number of processes if no cgroup does. */
  #becoming({ account, isOwn }: PreparedCommand, cgroup: Cgroup | null): readonly string[] {
    const { isolation } = this.#services;
    const { pids } = this.#context.plan;
    // Limit the processes of a user only if the execution has its own user id, because the kernel counts processes per
    // user.
    const isBounded = isOwn && cgroup?.limitsPids !== true;
    const bound = isBounded ? ["prlimit", `--nproc=${pids}:${pids}`] : [];
    return [...bound, ...becoming(account, isolation.privileges)];
  }

  /**
   * The namespaces of an execution; null for none. An execution with its own user id sees no processes and no shared
   * files of others. Other executions only get a namespace if they have no cgroup, so that all their processes can be
   * ended.
   */
  async #namespacesFor(
    { isOwn, home, command }: PreparedCommand,
    cgroup: Cgroup | null,
  ): Promise<ShimNamespaces | null> {
    const { isolation } = this.#services;
    if (!isolation.hasNamespaces || !(isOwn || cgroup === null)) return null;
    const mounts = isOwn ? await privateMounts(this.#context.directory, [home, command.directory]) : [];
    return { unsharing: unsharing(isOwn), mounts };
  }

  /** The cgroup of the program, as launched by this keeper or an earlier one; null if there is none. */
  async #launchedCgroup(): Promise<Cgroup | null> {
    const { directory, identity } = this.#context;
    this.#cgroup ??= await readCgroup(directory, identity.id);
    return this.#cgroup;
  }

  /** The cgroup if it still exists. If not, for example after an unmount, the processes are found in other ways. */
  async #existingCgroup(): Promise<Cgroup | null> {
    const cgroup = await this.#launchedCgroup();
    return (await cgroup?.exists()) === true ? cgroup : null;
  }

  get #home(): string {
    return join(this.#services.scratch, this.#context.identity.id);
  }

  async #ownUserId(): Promise<number | null> {
    return ownUserId(this.#home, this.#services.userIds?.range ?? null);
  }

  /**
   * The processes of an execution without a cgroup, and whether the list is complete; null if no process is known yet.
   */
  async #members(): Promise<{ readonly pids: readonly number[]; readonly areAll: boolean } | null> {
    const { directory } = this.#context;
    const init = await readInit(directory);
    if (init !== null) return { pids: await otherProcesses(init.pid), areAll: true };
    const userId = await this.#ownUserId();
    if (userId !== null) return { pids: await processesOfUser(userId), areAll: true };
    const child = this.#child ?? (await readShim(directory)).child;
    if (child === null) return null;
    const session = await processesOfSession(child.pid);
    // A process with the leader's id but another start time shows that the id was reused for another session.
    const isAnother = session.some(({ pid, start }) => pid === child.pid && start !== child.start);
    const own = isAnother ? [] : session.map(({ pid }) => pid);
    return { pids: [...new Set([...own, ...(await processesOfExecution(this.#home))])], areAll: false };
  }

  /**
   * Kill the processes of an execution without a cgroup. No other process can enter its session. Returns their number.
   */
  async #killMembers(): Promise<number> {
    const pids = (await this.#members())?.pids ?? [];
    for (const pid of pids) sendSignal(pid, "SIGKILL");
    return pids.length;
  }

  async #killUntilNone(): Promise<boolean> {
    if (!this.#context.isOfThisBoot) return true;
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      const userId = await this.#ownUserId();
      if (userId !== null) await killUser(userId);
      const left = userId === null ? await this.#killMembers() : (await processesOfUser(userId)).length;
      if (left === 0) return true;
      await new Promise((resolve) => setTimeout(resolve, PASS_PAUSE_MS));
    }
    return false;
  }

  /** Watch the files that the shim writes. */
  #observe(): void {
    const { directory, log, onNotice } = this.#context;
    if (this.#watcher !== null || this.#isClosed) return;
    try {
      this.#watcher = watch(join(directory, "run"), onNotice);
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch (error) {
      // Continue without a watch, because the keeper's regular scan finds changes a little later.
      log.warn({ err: error }, "cannot watch the directory of an execution");
    }
    onNotice();
  }

  async #pump(): Promise<void> {
    const { directory, log, output, wallMs } = this.#context;
    (await output()).take(({ stdout, stderr }) => [
      new OutputPump(join(directory, "stdout.pipe"), stdout, { wallMs, log }),
      new OutputPump(join(directory, "stderr.pipe"), stderr, { wallMs, log }),
    ]);
  }
}

/**
 * Find out whether a process of the cgroup owns a port. The result is unknown when the cgroup's processes cannot be
 * read.
 */
export async function ownerInCgroup(port: number, cgroup: Pick<Cgroup, "processes">): Promise<PortOwner> {
  let processes: readonly number[];
  try {
    processes = await cgroup.processes();
  } catch (error) {
    return { kind: "unknown", why: `the processes of its cgroup cannot be read: ${errorCode(error) ?? String(error)}` };
  }
  return ownerOfPort(port, processes);
}

/**
 * Create the directories that an execution sees instead of those that all users share. The directories in `needed` stay
 * visible, even below a shared one.
 */
async function privateMounts(directory: string, needed: readonly string[]): Promise<ShimNamespaces["mounts"]> {
  const kept: (readonly [string, string])[] = [];
  const covered: (readonly [string, string])[] = [["tmpfs", "/dev/shm"]];
  for (const shared of SHARED_DIRECTORIES) {
    const real = await realpath(shared).catch(() => null);
    // Skip a missing directory, and a link to another shared directory.
    if (real !== shared) continue;
    const own = join(PRIVATE, shared.slice(1).replace("/", "-"));
    await mkdir(join(directory, own), { recursive: true });
    // Set the mode again, because the umask restricts the mode that mkdir() sets.
    await chmod(join(directory, own), 0o1777);
    const below = [...new Set(needed)].filter((path) => path.startsWith(`${shared}/`));
    kept.push(...below.map((path) => [path, join(own, path.slice(shared.length + 1))] as const));
    covered.push([own, shared]);
  }
  return [...kept, ...covered];
}

/** Send a signal. Returns false when the process does not exist. */
function sendSignal(pid: number, signal: string): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Remove the directory that an execution worked in, with everything in it. The tree belongs to a user who may have
 * other executions running, and one of them could replace a directory with a link during the removal. The `rm` of
 * coreutils opens each directory from its parent and follows no link, whereas Node.js uses whole paths.
 */
async function removeTree(path: string): Promise<void> {
  await run("rm", ["-rf", "--", path], { timeout: LIMIT_MS });
}

/** Runs executions as processes of this machine. */
export class ProcessExecutor implements Executor<ProcessPlan> {
  /**
   * Maximum number of executions to start at the same time. Starting a process costs a few forks, and starting more at
   * a time would only delay all of them.
   */
  readonly mostLaunching = 8;
  readonly #services: ProcessServices;

  constructor(services: ProcessServices) {
    this.#services = services;
  }

  programOf(context: ProgramContext<ProcessPlan>): Program {
    return new ProcessProgram(this.#services, context);
  }

  /** Check every execution, because reading its files is as cheap as reading a list. */
  async survey(): Promise<(id: string) => boolean> {
    return () => true;
  }

  async end(id: string): Promise<void> {
    const { cgroups, scratch, userIds } = this.#services;
    if (cgroups !== null && !(await new Cgroup(cgroups, id).end())) {
      throw new Error(`processes of execution ${id} are still running`);
    }
    const home = join(scratch, id);
    const userId = await ownUserId(home, userIds?.range ?? null);
    if (userId !== null) await killUser(userId);
    for (const pid of await processesOfExecution(home)) sendSignal(pid, "SIGKILL");
  }

  /** Does nothing, because a process leaves files only in its own directories, which are removed with the execution. */
  async tidy(): Promise<void> {}
}
