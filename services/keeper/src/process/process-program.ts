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
import type { Executor, Launch, Program, ProgramContext, Verdict } from "../execution/executor.ts";
import { entering, type Isolation, unsharing } from "../launch/isolation.ts";
import { becoming, programScript } from "../launch/launch-script.ts";
import { type LaunchServices, ownUserId, type PreparedCommand, prepareLaunch } from "../launch/prepare-launch.ts";
import { exitWallMs, readInit, readShim, releaseShim, type ShimNamespaces, startShim } from "../launch/shim.ts";
import { judgeShim } from "../launch/shim-facts.ts";
import { isAlive, type ProcessName, processesOfSession } from "../machine/process-name.ts";
import { killUser, processesBeside, processesOfExecution, processesOfUser } from "../machine/user-processes.ts";
import { OutputPump } from "../output/output-pump.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";

/** What processes of a machine are run with. */
export interface ProcessServices extends LaunchServices {
  /** Where new executions get their cgroups; null where none can be made. It can change. */
  readonly cgroups: CgroupHierarchy | null;
  readonly isolation: Isolation;
}

const LOOPBACK = "127.0.0.1";

const run = promisify(execFile);
const LIMIT_MS = 600_000;

/** The folder, in an execution's directory, of what it sees as /tmp and /var/tmp. */
const PRIVATE = "private";

/** Directories that all users of a machine share. */
const SHARED_DIRECTORIES = ["/tmp", "/var/tmp"] as const;

/** Processes can fork while others are killed. Each pass kills the children of the one before. */
const MOST_PASSES = 50;
const PASS_PAUSE_MS = 100;

/** A process with its shim. */
class ProcessProgram implements Program {
  readonly #services: ProcessServices;
  readonly #context: ProgramContext<ProcessPlan>;
  /** As it was launched; undefined until that is known. */
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
    // A shim of the keeper before may be reading it.
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

  /** A shim is started at once. */
  abandon(): void {}

  async look(isLate: boolean): Promise<Verdict> {
    const { directory, isOfThisBoot } = this.#context;
    const facts = await readShim(directory);
    if (facts.childLife === "alive") this.#child = facts.child;
    if (isOfThisBoot && facts.hasStarted && facts.shim !== "unknown") {
      this.#observe();
      await this.#pump();
    }
    const verdict = judgeShim(facts, isLate);
    switch (verdict.kind) {
      case "not-launched":
      case "wait":
      case "launch-failed":
        return verdict;
      case "runs":
        this.#child = verdict.child;
        return { kind: "runs", about: "" };
      case "exited": {
        const memoryKill = (await (await this.#launchedCgroup())?.wasOutOfMemory()) ?? { kind: "no" };
        const exit = verdict.exit && { ...verdict.exit, memoryKill };
        return { kind: "exited", exit, wallMs: await exitWallMs(directory), about: "" };
      }
    }
  }

  async lookAfterEnd(): Promise<boolean> {
    // The keeper may have been killed before it let go.
    if ((await readShim(this.#context.directory)).shim !== "alive") return false;
    await this.#pump();
    return true;
  }

  /** Signal the group of its program; a program that is no leader yet, itself. */
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
    // A process that left its session and its environment is not seen as one of the execution.
    if (owner.kind === "other" && !members.areAll) {
      return { kind: "unknown", why: "none of its session does, and it has no cgroup" };
    }
    return owner;
  }

  async release(): Promise<void> {
    const { directory } = this.#context;
    this.close();
    await releaseShim(directory);
    // After the end no keeper starts it: what its job was given is not kept.
    await rm(join(directory, "program"), { force: true });
    const cgroup = await this.#existingCgroup();
    if (cgroup === null) await this.#killUntilNone();
    else await cgroup.end();
    await removeTree(join(directory, PRIVATE));
  }

  async remove(): Promise<void> {
    await removeTree(this.#home);
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
  }

  /** The words that run a command as another user, and limit its processes where no cgroup does. */
  #becoming({ account, isOwn }: PreparedCommand, cgroup: Cgroup | null): readonly string[] {
    const { isolation } = this.#services;
    const { pids } = this.#context.plan;
    // The kernel counts per user, so this only works for an execution with its own user id.
    const isBounded = isOwn && cgroup?.limitsPids !== true;
    const bound = isBounded ? ["prlimit", `--nproc=${pids}:${pids}`] : [];
    return [...bound, ...becoming(account, isolation.privileges)];
  }

  /**
   * An execution with its own user id sees no processes and no shared files of others. For other executions a namespace
   * only serves to end them where there is no cgroup.
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

  /** The cgroup with which it was launched, by this keeper or an earlier one; null for none. */
  async #launchedCgroup(): Promise<Cgroup | null> {
    const { directory, identity } = this.#context;
    this.#cgroup ??= await readCgroup(directory, identity.id);
    return this.#cgroup;
  }

  /** The same, unless it is not there, as after an unmount: its processes are then found in other ways. */
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

  /** Its processes when it has no cgroup, and whether these are all of them; null when none are known yet. */
  async #members(): Promise<{ readonly pids: readonly number[]; readonly areAll: boolean } | null> {
    const { directory } = this.#context;
    const init = await readInit(directory);
    if (init !== null) return { pids: await processesBeside(init.pid), areAll: true };
    const userId = await this.#ownUserId();
    if (userId !== null) return { pids: await processesOfUser(userId), areAll: true };
    const child = this.#child ?? (await readShim(directory)).child;
    if (child === null) return null;
    const session = await processesOfSession(child.pid);
    // A process that has the leader's id and another start shows that the id was used again, for another session.
    const isAnother = session.some(({ pid, start }) => pid === child.pid && start !== child.start);
    const own = isAnother ? [] : session.map(({ pid }) => pid);
    return { pids: [...new Set([...own, ...(await processesOfExecution(this.#home))])], areAll: false };
  }

  /** Kill the processes of its session, which no other process can enter, and those with its environment. */
  async #killMembers(): Promise<number> {
    const pids = (await this.#members())?.pids ?? [];
    for (const pid of pids) sendSignal(pid, "SIGKILL");
    return pids.length;
  }

  async #killUntilNone(): Promise<void> {
    if (!this.#context.isOfThisBoot) return;
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      const userId = await this.#ownUserId();
      if (userId !== null) await killUser(userId);
      const left = userId === null ? await this.#killMembers() : (await processesOfUser(userId)).length;
      if (left === 0) return;
      await new Promise((resolve) => setTimeout(resolve, PASS_PAUSE_MS));
    }
    this.#context.log.warn({}, "processes of an execution that has ended are still running");
  }

  /** Hear of what the shim writes down. */
  #observe(): void {
    const { directory, log, onNotice } = this.#context;
    if (this.#watcher !== null || this.#isClosed) return;
    try {
      this.#watcher = watch(join(directory, "run"), onNotice);
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch (error) {
      // The keeper's regular look finds it, a little later.
      log.warn({ err: error }, "directory of an execution cannot be watched");
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

/** Find out whether a process of the cgroup owns a port. Unknown when its processes cannot be read. */
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
 * Make the directories that an execution sees instead of those that all users share. The directories in `needed` stay
 * visible, also below a shared one.
 */
async function privateMounts(directory: string, needed: readonly string[]): Promise<ShimNamespaces["mounts"]> {
  const kept: (readonly [string, string])[] = [];
  const covered: (readonly [string, string])[] = [["tmpfs", "/dev/shm"]];
  for (const shared of SHARED_DIRECTORIES) {
    const real = await realpath(shared).catch(() => null);
    // Skip a missing directory, and a link, which leads to another of them.
    if (real !== shared) continue;
    const own = join(PRIVATE, shared.slice(1).replace("/", "-"));
    await mkdir(join(directory, own), { recursive: true });
    // The umask reduces the mode of mkdir().
    await chmod(join(directory, own), 0o1777);
    const below = [...new Set(needed)].filter((path) => path.startsWith(`${shared}/`));
    kept.push(...below.map((path) => [path, join(own, path.slice(shared.length + 1))] as const));
    covered.push([own, shared]);
  }
  return [...kept, ...covered];
}

/** False when there is no such process. */
function sendSignal(pid: number, signal: string): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

/**
 * Remove the directory that an execution worked in, with all that it left there. The tree belongs to a user who may
 * have other executions at work: one of them could put a link in place of a directory meanwhile. The `rm` of coreutils
 * opens each directory from the one above and follows no link; Node's goes by whole paths.
 */
async function removeTree(path: string): Promise<void> {
  await run("rm", ["-rf", "--", path], { timeout: LIMIT_MS });
}

/** Runs processes of the machine. */
export class ProcessExecutor implements Executor<ProcessPlan> {
  /** Starting a process costs a few forks: more at once would only make all of them late. */
  readonly mostLaunching = 8;
  readonly #services: ProcessServices;

  constructor(services: ProcessServices) {
    this.#services = services;
  }

  programOf(context: ProgramContext<ProcessPlan>): Program {
    return new ProcessProgram(this.#services, context);
  }

  /** Each has its files, which are read as cheaply as any list of them. */
  async survey(): Promise<(id: string) => boolean> {
    return () => true;
  }

  async end(id: string): Promise<void> {
    const { cgroups, scratch, userIds } = this.#services;
    if (cgroups !== null) await new Cgroup(cgroups, id).end();
    const home = join(scratch, id);
    const userId = await ownUserId(home, userIds?.range ?? null);
    if (userId !== null) await killUser(userId);
    for (const pid of await processesOfExecution(home)) sendSignal(pid, "SIGKILL");
  }

  /** What a process leaves is in its own directories, which are removed with it. */
  async tidy(): Promise<void> {}
}
