import type { Logger } from "@rollcall/process";
import type { Execution, ExecutionIdentity } from "../journal/execution-entry.ts";
import { ExecutionOutput } from "../output/execution-output.ts";
import { type ReadSpec, readSpec } from "../spec/read-spec.ts";
import type { ExecutionEffect, ExecutionEvent } from "../state/execution-state.ts";
import { DueTimer } from "./due-timer.ts";
import { dueAtMs, stepExecution } from "./execution-machine.ts";
import type { Executor, Program } from "./executor.ts";
import type { KeeperServices } from "./keeper-services.ts";
import { RecordWriter } from "./record-writer.ts";

/** How long to wait for the engine after a reboot before reporting its containers as gone. */
const ANOTHER_BOOT_MS = 120_000;

/** Minimum time between two reports of a launch's progress. */
const PROGRESS_EVERY_MS = 3_000;

/**
 * How long a program can take to appear after its launch. If it does not appear, the launch was killed before starting
 * it.
 */
const LAUNCH_LIMIT_MS = 10_000;

/** An execution on this machine. It carries out the decisions of stepExecution(). */
export class LiveExecution {
  readonly identity: ExecutionIdentity;
  readonly #services: KeeperServices;
  readonly #log: Logger;
  readonly #directory: string;
  readonly #spec: ReadSpec;
  /** The program of the execution; null if its spec cannot be run. */
  readonly #program: Program | null;
  /** The executor that runs the program; null if the spec cannot be run. */
  readonly executor: Executor | null;
  #record: Execution;
  /** When this keeper launched or adopted the execution. */
  #launchedAtMs: number;
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #output: Promise<ExecutionOutput> | null = null;
  readonly #timer: DueTimer;
  readonly #writer: RecordWriter;
  /** The signal that could not be sent; null for none. */
  #unsent: string | null = null;
  #looking: Promise<void> | null = null;
  #scanAgain = false;
  #killing: Promise<void> | null = null;
  /** The progress of the launch in this keeper. */
  #launch: "none" | "queued" | "begun" | "over" = "none";
  #leaveQueue = () => {};
  #isAdopted = false;
  #isClosed = false;

  constructor(services: KeeperServices, record: Execution) {
    const { identity } = record;
    this.identity = identity;
    this.#services = services;
    this.#record = record;
    this.#log = services.log.child({ execution_id: identity.id, job: identity.job });
    this.#directory = services.journal.directoryOf(identity.id);
    this.#spec = readSpec(Buffer.from(identity.spec, "base64"));
    this.#launchedAtMs = services.clock.nowMs();
    this.executor = this.#spec.ok ? services.executors[this.#spec.plan.kind] : null;
    this.#program = this.#describe();
    this.#timer = new DueTimer(services.clock, () => this.#dispatch({ kind: "due" }));
    this.#writer = new RecordWriter({ ...services, log: this.#log, record: () => this.#record });
  }

  get record(): Execution {
    return this.#record;
  }

  get isEnded(): boolean {
    return this.#record.state.phase.kind === "ended";
  }

  /** Whether the execution has ended and none of its processes is left. */
  get isReleased(): boolean {
    const { phase } = this.#record.state;
    return phase.kind === "ended" && phase.killAtMs === null;
  }

  get isStarting(): boolean {
    return this.#record.state.phase.kind === "starting";
  }

  /** Queue the program to be started. An execution that was already stopped ends without waiting. */
  queue(): void {
    if (this.#launch !== "none") return;
    this.#launch = "queued";
    this.#endUnlaunched();
    if (!this.isEnded) this.#leaveQueue = this.#services.toLaunch(this);
  }

  /** Start the program for the first time. */
  async launch(): Promise<void> {
    // Launch the program only once in this keeper.
    if (this.isEnded || this.#isClosed || this.#launch === "begun" || this.#launch === "over") return;
    this.#launch = "begun";
    try {
      await this.#launchNow();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#dispatch({ kind: "launch-failed", message: `the execution could not be started: ${message}` });
    } finally {
      this.#launch = "over";
      this.#launchedAtMs = this.#services.clock.nowMs();
    }
  }

  async #launchNow(): Promise<void> {
    const program = this.#program;
    if (program === null) {
      return this.#dispatch({ kind: "launch-failed", message: this.#spec.ok ? "" : this.#spec.problem });
    }
    const launch = await program.launch();
    if (!launch.ok) this.#dispatch({ kind: "launch-failed", message: launch.problem });
  }

  /** Take over an execution that an earlier keeper left. */
  async adopt(): Promise<void> {
    if (this.isEnded) {
      if (this.isReleased) return;
      // Continue after an error, because otherwise no execution of this machine would be adopted.
      const rest = this.#isOfThisBoot ? this.#program?.checkAfterEnd() : undefined;
      await rest?.catch((error: unknown) => this.#log.error({ err: error }, "cannot store the rest of the output"));
      this.#setTimer();
      void this.#kill();
      return;
    }
    this.#isAdopted = true;
    await this.look();
    const { phase, rules } = this.#record.state;
    // Send the signal again, because the earlier keeper may have been killed before it sent the signal.
    if (phase.kind === "stopping") this.#carryOut({ kind: "signal", signal: rules.stopSignal });
    this.#setTimer();
  }

  /** Stop the execution, unless it has ended. */
  stop(): void {
    this.#dispatch({ kind: "stop" });
    this.#endUnlaunched();
    if (this.isStarting) this.#program?.abandon();
  }

  /** Set the timer again, because the agent has received something from the control plane. */
  wake(): void {
    this.#setTimer();
  }

  /** Find out what happened to the program. A call during a scan causes another scan. */
  look(): Promise<void> {
    this.#scanAgain = true;
    this.#looking ??= this.#lookUntilDone()
      .catch((error: unknown) => this.#log.error({ err: error }, "cannot inspect execution"))
      .finally(() => {
        this.#looking = null;
      });
    return this.#looking;
  }

  /** Repeat the write and the signal that failed, if the execution still needs them. */
  repeat(): void {
    if (this.#isClosed) return;
    this.#writer.repeat();
    const { phase } = this.#record.state;
    if (this.#unsent !== null && phase.kind === "stopping" && !phase.isKilled) void this.#signal(this.#unsent);
  }

  /** Record which store history knows the execution. */
  bind(logId: string): void {
    if (this.#record.logId === logId) return;
    this.#record = { ...this.#record, logId };
    this.#writer.save();
  }

  /**
   * Record that a store history refers to the execution. After a restore of the store, the execution's end is reported
   * again, even if the previous history let the keeper forget the execution.
   */
  named(logId: string): void {
    if (this.#record.logId === logId || this.#record.forgottenWallMs === null) return;
    this.#record = { ...this.#record, logId, forgottenWallMs: null };
    this.#writer.save();
  }

  /** Stop reporting the execution. Its output stays until it is removed. */
  forget(): void {
    if (!this.isEnded || this.#record.forgottenWallMs !== null) return;
    this.#record = { ...this.#record, forgottenWallMs: this.#services.clock.wallMs() };
    this.#writer.save();
    if (this.isReleased) this.#remove();
  }

  #remove(): void {
    this.#program?.remove().catch((error: unknown) => {
      this.#log.warn({ err: error }, "cannot remove the rest of an execution");
    });
  }

  /** The output of the execution, whether it runs or has ended. */
  async output(): Promise<ExecutionOutput> {
    // Keep the promise, so that the output is opened only once: of two stores of the same files, only one would get
    // what the program writes.
    const rules = this.#spec.ok ? this.#spec.plan.output : { maxFileBytes: 1, maxFiles: 1 };
    this.#output ??= ExecutionOutput.open(this.#directory, rules, this.#log).catch((error: unknown) => {
      this.#output = null;
      throw error;
    });
    return await this.#output;
  }

  /** Leave the execution running for the next keeper. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer.set(null);
    this.#program?.close();
    await this.#looking;
    await this.#output?.then((output) => output.close()).catch(() => {});
    await this.#writer.done;
  }

  async #lookUntilDone(): Promise<void> {
    while (this.#scanAgain && !this.isEnded && !this.#isClosed) {
      this.#scanAgain = false;
      await this.#lookOnce();
    }
  }

  async #lookOnce(): Promise<void> {
    const program = this.#program;
    if (program === null) return this.#launchAgain();
    const isLate = this.#services.clock.nowMs() - this.#launchedAtMs > LAUNCH_LIMIT_MS;
    const programStatus = await program.look(isLate);
    // While the engine does not respond, the state is unknown and does not change.
    if (programStatus.kind === "unreachable") {
      // A program of another boot has ended, and the engine has had enough time to report how it ended.
      const isOver = !this.#isOfThisBoot && this.#services.clock.nowMs() - this.#launchedAtMs > ANOTHER_BOOT_MS;
      if (isOver) this.#dispatch({ kind: "exited", exit: null });
      return;
    }
    if (!this.#isOfThisBoot && programStatus.kind !== "exited" && programStatus.kind !== "launch-failed") {
      // A program of another boot has ended, even if another program has its name now.
      this.#dispatch({ kind: "exited", exit: null });
      return;
    }
    switch (programStatus.kind) {
      case "wait":
        return;
      case "not-launched":
        // The previous keeper was killed before the launch, or before the shim took over. Launching again is safe,
        // because only one shim can take over.
        if (this.#launch === "over" && isLate) {
          this.#dispatch({ kind: "launch-failed", message: "the launch started nothing" });
        } else this.#launchAgain();
        return;
      case "runs":
        this.#dispatch({ kind: "launched", about: programStatus.about });
        return;
      case "launch-failed":
        this.#dispatch({ kind: "launch-failed", message: programStatus.message });
        // Also report the end, which counts only if the program was running before and the files of its shim were lost.
        this.#dispatch({ kind: "exited", exit: null });
        return;
      case "exited":
        if (this.isStarting) this.#dispatch({ kind: "launched", about: programStatus.about });
        this.#dispatch({ kind: "exited", exit: programStatus.exit }, programStatus.wallMs ?? undefined);
        return;
    }
  }

  /** Launch the program if the previous keeper was killed before it did so. */
  #launchAgain(): void {
    if (this.#isAdopted) this.queue();
  }

  /** End an execution that is stopped while it is queued. Nothing was started yet. */
  #endUnlaunched(): void {
    const { phase } = this.#record.state;
    if (this.#launch !== "queued" || phase.kind !== "starting" || phase.stop === null) return;
    this.#dispatch({ kind: "launch-failed", message: "stopped before it was started" });
  }

  #dispatch(event: ExecutionEvent, endedWallMs?: number): void {
    if (this.#isClosed) return;
    const { clock, seenAtMs } = this.#services;
    const before = this.#record.state;
    const input = { nowMs: clock.nowMs(), wallMs: endedWallMs ?? clock.wallMs(), seenAtMs: seenAtMs() };
    const { state, effects } = stepExecution(before, event, input);
    this.#record = { ...this.#record, state };
    for (const effect of effects) this.#carryOut(effect);
    if (state.phase.kind === "ended" && before.phase.kind !== "ended") {
      const { cause, code, signal } = state.phase;
      this.#leaveQueue();
      this.#log.info({ cause, code, signal, detail: state.message }, "execution ended");
    }
    this.#setTimer();
  }

  #carryOut(effect: ExecutionEffect): void {
    switch (effect.kind) {
      case "save":
        this.#writer.save();
        return;
      case "signal":
        void this.#signal(effect.signal);
        return;
      case "kill":
        void this.#kill();
        return;
      case "check":
        void this.#check();
        return;
    }
  }

  #setTimer(): void {
    this.#timer.set(this.#isClosed ? null : dueAtMs(this.#record.state, this.#services.seenAtMs()));
  }

  async #signal(signal: string): Promise<void> {
    this.#unsent = null;
    await this.#writer.done;
    try {
      await this.#program?.signal(signal);
    } catch (error) {
      this.#unsent = signal;
      this.#log.error({ err: error }, "cannot signal execution");
    }
  }

  /** Kill all processes of the execution, and release its resources once it has ended. */
  #kill(): Promise<void> {
    this.#killing ??= this.#killNow()
      .catch((error: unknown) => this.#log.error({ err: error }, "cannot kill execution"))
      .finally(() => {
        this.#killing = null;
      });
    return this.#killing;
  }

  async #killNow(): Promise<void> {
    await this.#program?.kill();
    // Check whether the program has ended, in case nothing else reports its end.
    if (!this.isEnded) await this.look();
    if (!this.isEnded) return;
    await this.#writer.done;
    const isNoneLeft = (await this.#program?.release()) ?? true;
    if (!isNoneLeft) return this.#log.warn({}, "processes of an ended execution are still running");
    this.#dispatch({ kind: "released" });
    // Remove the execution's files last, because they are needed to find its processes.
    if (this.#record.forgottenWallMs !== null) this.#remove();
  }

  async #check(): Promise<void> {
    try {
      const result = await this.#program?.check();
      if (result === undefined) return;
      const { passed, message } = result;
      this.#dispatch(passed === null ? { kind: "unchecked", message } : { kind: "checked", passed, message });
    } catch (error) {
      this.#log.error({ err: error }, "cannot check execution");
      // Report this, because the next check is due only after the result of this one.
      this.#dispatch({ kind: "unchecked", message: error instanceof Error ? error.message : String(error) });
    }
  }

  get #isOfThisBoot(): boolean {
    return this.#record.bootId === this.#services.bootId;
  }

  #describe(): Program | null {
    if (!this.#spec.ok) return null;
    const { plan } = this.#spec;
    const { executors } = this.#services;
    const context = {
      identity: this.identity,
      directory: this.#directory,
      isOfThisBoot: this.#isOfThisBoot,
      log: this.#log,
      output: () => this.output(),
      wallMs: () => this.#services.clock.wallMs(),
      onProgress: (message: string) => this.#onProgress(message),
      onNotice: () => void this.look(),
    };
    switch (plan.kind) {
      case "process":
        return executors.process.programOf({ ...context, plan });
      case "docker":
        return executors.docker.programOf({ ...context, plan });
    }
  }

  #onProgress(message: string): void {
    const nowMs = this.#services.clock.nowMs();
    if (nowMs - this.#progressAtMs < PROGRESS_EVERY_MS) return;
    this.#progressAtMs = nowMs;
    this.#dispatch({ kind: "progress", message });
  }
}
