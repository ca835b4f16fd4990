import { type FSWatcher, watch } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@rollcall/process";
import { Cgroup } from "../cgroup/cgroup.ts";
import { runCheck } from "../check/run-check.ts";
import type { ExecutionIdentity, ExecutionRecord } from "../journal/execution-record.ts";
import { becoming, programScript } from "../launch/launch-script.ts";
import { prepareLaunch } from "../launch/prepare-launch.ts";
import { removeScratch } from "../launch/remove-scratch.ts";
import { exitWallMs, readShim, releaseShim, startShim } from "../launch/shim.ts";
import { judgeShim } from "../launch/shim-facts.ts";
import { isAlive, type ProcessName, processesOfSession } from "../machine/process-name.ts";
import { ExecutionOutput } from "../output/execution-output.ts";
import { type ReadSpec, readSpec } from "../spec/read-spec.ts";
import { dueAtMs, stepExecution } from "./execution-machine.ts";
import type { ExecutionEffect, ExecutionEvent, ExecutionState } from "./execution-state.ts";
import type { KeeperServices } from "./keeper-services.ts";

/** A shim that has begun names itself within this; one that has not was killed. */
const SHIM_LIMIT_MS = 10_000;

/** One execution of this machine: carries out what stepExecution() decides. */
export class KeptExecution {
  readonly identity: ExecutionIdentity;
  readonly #services: KeeperServices;
  readonly #log: Logger;
  readonly #directory: string;
  readonly #cgroup: Cgroup | null;
  readonly #spec: ReadSpec;
  #record: ExecutionRecord;
  /** When it was launched here, or adopted. */
  #launchedAtMs: number;
  #child: ProcessName | null = null;
  #output: ExecutionOutput | null = null;
  #watcher: FSWatcher | null = null;
  #timer: NodeJS.Timeout | undefined;
  #saving: Promise<void> = Promise.resolve();
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  #isLaunchedHere = false;
  #isAdopted = false;
  #isClosed = false;

  constructor(services: KeeperServices, record: ExecutionRecord) {
    const { identity } = record;
    this.identity = identity;
    this.#services = services;
    this.#record = record;
    this.#log = services.log.child({ execution_id: identity.id, job: identity.job });
    this.#directory = services.journal.directoryOf(identity.id);
    this.#cgroup = services.cgroups === null ? null : new Cgroup(services.cgroups, identity.id);
    this.#spec = readSpec(Buffer.from(identity.spec, "base64"));
    this.#launchedAtMs = services.clock.nowMs();
  }

  get record(): ExecutionRecord {
    return this.#record;
  }

  get isEnded(): boolean {
    return this.#record.state.phase.kind === "ended";
  }

  /** Start its process for the first time. */
  async launch(): Promise<void> {
    // Once in a keeper: in its turn among those that are started, or when it is adopted and looked at.
    if (this.isEnded || this.#isClosed || this.#isLaunchedHere) return;
    this.#isLaunchedHere = true;
    this.#launchedAtMs = this.#services.clock.nowMs();
    const { phase } = this.#record.state;
    if (phase.kind === "starting" && phase.stop !== null) {
      return this.#dispatch({ kind: "launch-failed", message: "it was stopped before it was started" });
    }
    const { rules, scratch } = this.#services;
    const { identity } = this;
    const spec = this.#spec;
    if (!spec.ok) return this.#dispatch({ kind: "launch-failed", message: spec.problem });
    const prepared = await prepareLaunch(identity, spec.plan, rules, scratch);
    if (!prepared.ok) return this.#dispatch({ kind: "launch-failed", message: prepared.problem });
    try {
      await this.#cgroup?.create(spec.plan);
      const program = join(this.#directory, "program");
      // A shim of the keeper before may be reading it.
      await writeFile(`${program}.new`, programScript(prepared.command), { mode: 0o600 });
      await rename(`${program}.new`, program);
      await startShim({
        directory: this.#directory,
        becoming: becoming(prepared.account),
        cgroups: this.#cgroup?.places ?? [],
      });
      this.#observe();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#dispatch({ kind: "launch-failed", message: `it could not be started: ${message}` });
    }
  }

  /** Take over what an earlier keeper has left. */
  async adopt(): Promise<void> {
    const isOfThisBoot = this.#record.bootId === this.#services.bootId;
    if (!isOfThisBoot) {
      const { exit } = await readShim(this.#directory);
      this.#dispatch({ kind: "exited", exit: exit && { ...exit, isOutOfMemory: false } });
      return;
    }
    if (this.isEnded) {
      // The keeper may have been killed before it let go.
      if ((await readShim(this.#directory)).shim !== "alive") return;
      await this.#pump();
      await this.#kill();
      return;
    }
    this.#isAdopted = true;
    this.#observe();
    await this.look();
    const { phase, rules } = this.#record.state;
    // The keeper may have been killed before it sent the signal.
    if (phase.kind === "stopping") await this.#signal(rules.stopSignal);
    this.#setTimer();
  }

  /** Stop it, unless it has ended. */
  stop(): void {
    this.#dispatch({ kind: "stop" });
  }

  /** Look at the times again: the control plane was seen, or the keeper has just begun. */
  wake(): void {
    this.#setTimer();
  }

  /** See what became of its process. Calls that come meanwhile are answered by one more look. */
  look(): Promise<void> {
    this.#lookAgain = true;
    this.#looking ??= this.#lookUntilDone()
      .catch((error: unknown) => this.#log.error({ err: error }, "execution cannot be looked at"))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  /** Note which history knows it. */
  bind(logId: string): void {
    if (this.#record.logId === logId) return;
    this.#record = { ...this.#record, logId };
    this.#save();
  }

  /**
   * A history says something of it, and so it knows it. One that was restored is told again how it ended, though the
   * history before has let it be forgotten.
   */
  named(logId: string): void {
    if (this.#record.logId === logId || this.#record.forgottenWallMs === null) return;
    this.#record = { ...this.#record, logId, forgottenWallMs: null };
    this.#save();
  }

  /** Report it no more. Its output stays until it is removed. */
  forget(): void {
    if (!this.isEnded || this.#record.forgottenWallMs !== null) return;
    this.#record = { ...this.#record, forgottenWallMs: this.#services.clock.wallMs() };
    this.#save();
    removeScratch(join(this.#services.scratch, this.identity.id)).catch((error: unknown) => {
      this.#log.warn({ err: error }, "directory of an execution cannot be removed");
    });
  }

  /** Its output, whether it runs or not. */
  async output(): Promise<ExecutionOutput> {
    this.#output ??= await this.#openOutput();
    return this.#output;
  }

  /** Leave it as it is, for the next keeper. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#watcher?.close();
    await this.#looking;
    await this.#output?.close();
    await this.#saving;
  }

  async #lookUntilDone(): Promise<void> {
    while (this.#lookAgain && !this.isEnded && !this.#isClosed) {
      this.#lookAgain = false;
      await this.#lookOnce();
    }
  }

  async #lookOnce(): Promise<void> {
    const facts = await readShim(this.#directory);
    if (facts.childLife === "alive") this.#child = facts.child;
    if (facts.hasStarted && facts.shim !== "unknown") await this.#pump();
    const isLate = this.#services.clock.nowMs() - this.#launchedAtMs > SHIM_LIMIT_MS;
    const verdict = judgeShim(facts, isLate);
    switch (verdict.kind) {
      case "wait":
        return;
      case "not-launched":
        // A keeper that was killed before it started the shim, or before the shim took the execution on. Only one shim
        // can do so.
        if (isLate && this.#isLaunchedHere) {
          this.#dispatch({ kind: "launch-failed", message: "its launch was not taken on" });
        } else if (this.#isAdopted) {
          await this.launch();
        }
        return;
      case "runs":
        this.#child = verdict.child;
        this.#dispatch({ kind: "launched" });
        return;
      case "launch-failed":
        this.#dispatch({ kind: "launch-failed", message: verdict.message });
        // Where it began once, and the status file was lost.
        this.#dispatch({ kind: "exited", exit: null });
        return;
      case "exited":
        if (this.#record.state.phase.kind === "starting") this.#dispatch({ kind: "launched" });
        await this.#exited(verdict.exit);
        return;
    }
  }

  async #exited(exit: { readonly code: number | null; readonly signal: string | null } | null): Promise<void> {
    const isOutOfMemory = (await this.#cgroup?.wasOutOfMemory()) ?? false;
    const wallMs = (await exitWallMs(this.#directory)) ?? undefined;
    this.#dispatch({ kind: "exited", exit: exit && { ...exit, isOutOfMemory } }, wallMs);
  }

  #dispatch(event: ExecutionEvent, endedWallMs?: number): void {
    if (this.#isClosed) return;
    const { clock, seenAtMs } = this.#services;
    const before = this.#record.state;
    const input = { nowMs: clock.nowMs(), wallMs: endedWallMs ?? clock.wallMs(), seenAtMs: seenAtMs() };
    const { state, effects } = stepExecution(before, event, input);
    this.#record = { ...this.#record, state };
    for (const effect of effects) this.#carryOut(effect);
    if (state.phase.kind === "ended" && before.phase.kind !== "ended") this.#logEnd(state);
    this.#setTimer();
  }

  #carryOut(effect: ExecutionEffect): void {
    switch (effect.kind) {
      case "save":
        this.#save();
        return;
      case "signal":
        void this.#saving
          .then(() => this.#signal(effect.signal))
          .catch((error: unknown) => this.#log.error({ err: error }, "execution cannot be signalled"));
        return;
      case "kill":
        void this.#kill();
        return;
      case "check":
        void this.#check().catch((error: unknown) => this.#log.error({ err: error }, "execution cannot be checked"));
        return;
    }
  }

  #logEnd({ phase, message }: ExecutionState): void {
    if (phase.kind !== "ended") return;
    this.#log.info({ cause: phase.cause, code: phase.code, signal: phase.signal, detail: message }, "execution ended");
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    const { clock, seenAtMs } = this.#services;
    const atMs = dueAtMs(this.#record.state, seenAtMs());
    if (atMs === null) return;
    // A longer delay than this overflows to 1 ms in Node; then it looks again.
    const waitMs = Math.min(2_147_483_647, Math.max(0, Math.ceil(atMs - clock.nowMs())));
    this.#timer = setTimeout(() => this.#dispatch({ kind: "due" }), waitMs);
  }

  #save(): void {
    const { journal, onChange } = this.#services;
    this.#saving = this.#saving.then(async () => {
      const record = this.#record;
      try {
        await journal.save(record);
      } catch (error) {
        this.#log.error({ err: error }, "execution cannot be recorded");
      }
      onChange(record);
    });
  }

  /** Signal the group of its program; a program that is no leader yet, itself. */
  async #signal(signal: string): Promise<void> {
    const child = this.#child;
    if (child === null || !(await isAlive(child))) return;
    sendSignal(-child.pid, signal) || sendSignal(child.pid, signal);
  }

  /** Kill all its processes, and let go of what it had once it has ended. */
  async #kill(): Promise<void> {
    try {
      if (this.#cgroup !== null) await this.#cgroup.kill();
      else await this.#killSession();
      if (this.isEnded) await this.#cleanUp();
    } catch (error) {
      this.#log.error({ err: error }, "execution cannot be killed");
    }
    // Where nothing tells of its end.
    if (!this.isEnded) await this.look();
  }

  /** Those of its session, which no other process can enter. */
  async #killSession(): Promise<void> {
    const child = this.#child ?? (await readShim(this.#directory)).child;
    if (child === null || this.#record.bootId !== this.#services.bootId) return;
    const members = await processesOfSession(child.pid);
    // A process that has the leader's id and another start shows that the id was used again, for another session.
    if (members.some(({ pid, start }) => pid === child.pid && start !== child.start)) return;
    for (const { pid } of members) sendSignal(pid, "SIGKILL");
  }

  async #cleanUp(): Promise<void> {
    this.#watcher?.close();
    await releaseShim(this.#directory);
    // After the end no keeper starts it: what its job was given is not kept.
    await rm(join(this.#directory, "program"), { force: true });
    await this.#saving;
    await this.#cgroup?.end();
  }

  async #check(): Promise<void> {
    const spec = this.#spec;
    if (!spec.ok || spec.plan.probe === null) return;
    const { rules, scratch } = this.#services;
    const { plan } = spec;
    const result = await runCheck(plan.probe ?? { kind: "command", argv: [] }, {
      ports: this.identity.ports,
      timeoutMs: plan.probeTimeoutMs,
      cgroups: this.#cgroup?.places ?? [],
      prepare: async (argv) => {
        const prepared = await prepareLaunch(this.identity, { ...plan, argv }, rules, scratch);
        return prepared.ok ? prepared : null;
      },
    });
    this.#dispatch({ kind: "checked", ...result });
  }

  /** Hear of what the shim writes down. */
  #observe(): void {
    if (this.#watcher !== null || this.#isClosed) return;
    try {
      this.#watcher = watch(join(this.#directory, "run"), () => void this.look());
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch (error) {
      // The keeper's regular look finds it, a little later.
      this.#log.warn({ err: error }, "directory of an execution cannot be watched");
    }
    void this.look();
  }

  async #pump(): Promise<void> {
    const output = await this.output();
    output.pump();
  }

  async #openOutput(): Promise<ExecutionOutput> {
    const rules = this.#spec.ok ? this.#spec.plan.output : { maxFileBytes: 1, maxFiles: 1 };
    return ExecutionOutput.open(this.#directory, rules, this.#log);
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
