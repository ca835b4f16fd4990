import { execFile } from "node:child_process";
import { type FSWatcher, watch } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Cgroup } from "../cgroup/cgroup.ts";
import type { CgroupHierarchy } from "../cgroup/cgroup-hierarchy.ts";
import { ownerOfPort, type PortOwner } from "../check/port-owner.ts";
import { tryCommand } from "../check/try-command.ts";
import { type CheckResult, tryPort } from "../check/try-port.ts";
import type { Executor, Launch, Program, ProgramContext, Verdict } from "../execution/executor.ts";
import { becoming, programScript } from "../launch/launch-script.ts";
import type { WorkRules } from "../launch/permissions.ts";
import { prepareLaunch } from "../launch/prepare-launch.ts";
import { exitWallMs, readShim, releaseShim, startShim } from "../launch/shim.ts";
import { judgeShim } from "../launch/shim-facts.ts";
import { isAlive, type ProcessName, processesOfSession } from "../machine/process-name.ts";
import { OutputPump } from "../output/output-pump.ts";
import type { ProcessPlan } from "../spec/read-spec.ts";

/** What processes of a machine are run with. */
export interface ProcessServices {
  /** Null where none can be made. */
  readonly cgroups: CgroupHierarchy | null;
  readonly rules: WorkRules;
  /** Where executions have directories of their own. */
  readonly scratch: string;
}

const LOOPBACK = "127.0.0.1";

const run = promisify(execFile);
const LIMIT_MS = 600_000;

/** A process with its shim. */
class ProcessProgram implements Program {
  readonly #services: ProcessServices;
  readonly #context: ProgramContext<ProcessPlan>;
  readonly #cgroup: Cgroup | null;
  #child: ProcessName | null = null;
  #watcher: FSWatcher | null = null;
  #isClosed = false;

  constructor(services: ProcessServices, context: ProgramContext<ProcessPlan>) {
    this.#services = services;
    this.#context = context;
    this.#cgroup = services.cgroups === null ? null : new Cgroup(services.cgroups, context.identity.id);
  }

  async launch(): Promise<Launch> {
    const { identity, plan, directory } = this.#context;
    const { rules, scratch } = this.#services;
    const prepared = await prepareLaunch(identity, plan, rules, scratch);
    if (!prepared.ok) return prepared;
    await this.#cgroup?.create(plan);
    const program = join(directory, "program");
    // A shim of the keeper before may be reading it.
    await writeFile(`${program}.new`, programScript(prepared.command), { mode: 0o600 });
    await rename(`${program}.new`, program);
    await startShim({ directory, becoming: becoming(prepared.account), cgroups: this.#cgroup?.places ?? [] });
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
        const isOutOfMemory = (await this.#cgroup?.wasOutOfMemory()) ?? false;
        const exit = verdict.exit && { ...verdict.exit, isOutOfMemory };
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
    if (this.#cgroup !== null) await this.#cgroup.kill();
    else await this.#killSession();
  }

  async check(): Promise<CheckResult> {
    const { identity, plan } = this.#context;
    const { probe, probeTimeoutMs: timeoutMs } = plan;
    if (probe === null) return { passed: true, message: "" };
    if (probe.kind !== "command") {
      const ownerOf = (port: number) => this.#ownerOf(port);
      return tryPort(probe, { host: LOOPBACK, ownerOf, ports: identity.ports, timeoutMs });
    }
    const { rules, scratch } = this.#services;
    const prepared = await prepareLaunch(identity, { ...plan, argv: probe.argv }, rules, scratch);
    if (!prepared.ok) return { passed: false, message: "its command cannot be prepared" };
    return tryCommand(prepared, { timeoutMs, cgroups: this.#cgroup?.places ?? [] });
  }

  async #ownerOf(port: number): Promise<PortOwner> {
    if (this.#cgroup !== null) return ownerOfPort(port, await this.#cgroup.processes());
    const child = this.#child;
    if (child === null) return { kind: "unknown", why: "the processes of the execution are not known yet" };
    const members = await processesOfSession(child.pid);
    const owner = await ownerOfPort(
      port,
      members.map(({ pid }) => pid),
    );
    // Without a cgroup, a process that left its session is not seen as one of the execution.
    if (owner.kind === "other") return { kind: "unknown", why: "none of its session does, and it has no cgroup" };
    return owner;
  }

  async release(): Promise<void> {
    const { directory } = this.#context;
    this.close();
    await releaseShim(directory);
    // After the end no keeper starts it: what its job was given is not kept.
    await rm(join(directory, "program"), { force: true });
    await this.#cgroup?.end();
  }

  async remove(): Promise<void> {
    await removeScratch(join(this.#services.scratch, this.#context.identity.id));
  }

  close(): void {
    this.#isClosed = true;
    this.#watcher?.close();
  }

  /** Those of its session, which no other process can enter. */
  async #killSession(): Promise<void> {
    const { directory, isOfThisBoot } = this.#context;
    const child = this.#child ?? (await readShim(directory)).child;
    if (child === null || !isOfThisBoot) return;
    const members = await processesOfSession(child.pid);
    // A process that has the leader's id and another start shows that the id was used again, for another session.
    if (members.some(({ pid, start }) => pid === child.pid && start !== child.start)) return;
    for (const { pid } of members) sendSignal(pid, "SIGKILL");
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
async function removeScratch(path: string): Promise<void> {
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
    const { cgroups } = this.#services;
    if (cgroups !== null) await new Cgroup(cgroups, id).end();
  }

  /** What a process leaves is in its own directories, which are removed with it. */
  async tidy(): Promise<void> {}
}
