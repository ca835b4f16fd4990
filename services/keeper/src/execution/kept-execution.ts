import type { Logger } from "@rollcall/process";
import type { ExecutionIdentity, ExecutionRecord } from "../journal/execution-record.ts";
import { ExecutionOutput } from "../output/execution-output.ts";
import { type ReadSpec, readSpec } from "../spec/read-spec.ts";
import { dueAtMs, stepExecution } from "./execution-machine.ts";
import type { ExecutionEffect, ExecutionEvent, ExecutionState } from "./execution-state.ts";
import type { Executor, Program } from "./executor.ts";
import type { KeeperServices } from "./keeper-services.ts";

/** How long an engine may take to be there after a boot, before what it ran is told as gone. */
const ANOTHER_BOOT_MS = 120_000;

/** How often the progress of a launch is reported at most. */
const PROGRESS_EVERY_MS = 3_000;

/** What was launched appears within this; what has not was killed. */
const LAUNCH_LIMIT_MS = 10_000;

/** One execution of this machine: carries out what stepExecution() decides. */
export class KeptExecution {
  readonly identity: ExecutionIdentity;
  readonly #services: KeeperServices;
  readonly #log: Logger;
  readonly #directory: string;
  readonly #spec: ReadSpec;
  /** Null where the spec says nothing that can be run. */
  readonly #program: Program | null;
  /** What runs it; null where nothing can. */
  readonly executor: Executor | null;
  #record: ExecutionRecord;
  /** When it was launched here, or adopted. */
  #launchedAtMs: number;
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #output: ExecutionOutput | null = null;
  #timer: NodeJS.Timeout | undefined;
  #saving: Promise<void> = Promise.resolve();
  #looking: Promise<void> | null = null;
  #lookAgain = false;
  /** Whether its launch has begun in this keeper, and whether it is over. */
  #launch: "none" | "queued" | "begun" | "over" = "none";
  #leaveQueue = () => {};
  #isAdopted = false;
  #isClosed = false;

  constructor(services: KeeperServices, record: ExecutionRecord) {
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
  }

  get record(): ExecutionRecord {
    return this.#record;
  }

  get isEnded(): boolean {
    return this.#record.state.phase.kind === "ended";
  }

  get isStarting(): boolean {
    return this.#record.state.phase.kind === "starting";
  }

  /** Have its program started when its turn comes. One that was stopped meanwhile waits for no turn. */
  queue(): void {
    if (this.#launch !== "none") return;
    this.#launch = "queued";
    this.#endUnlaunched();
    if (!this.isEnded) this.#leaveQueue = this.#services.toLaunch(this);
  }

  /** Start its program for the first time. */
  async launch(): Promise<void> {
    // Once in a keeper.
    if (this.isEnded || this.#isClosed || this.#launch === "begun" || this.#launch === "over") return;
    this.#launch = "begun";
    try {
      await this.#launchNow();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#dispatch({ kind: "launch-failed", message: `it could not be started: ${message}` });
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

  /** Take over what an earlier keeper has left. */
  async adopt(): Promise<void> {
    if (this.isEnded) {
      if (this.#isOfThisBoot && (await this.#program?.lookAfterEnd())) await this.#kill();
      return;
    }
    this.#isAdopted = true;
    await this.look();
    const { phase, rules } = this.#record.state;
    // The keeper may have been killed before it sent the signal.
    if (phase.kind === "stopping") this.#carryOut({ kind: "signal", signal: rules.stopSignal });
    this.#setTimer();
  }

  /** Stop it, unless it has ended. */
  stop(): void {
    this.#dispatch({ kind: "stop" });
    this.#endUnlaunched();
    if (this.isStarting) this.#program?.abandon();
  }

  /** Look at the times again: the control plane was seen, or the keeper has just begun. */
  wake(): void {
    this.#setTimer();
  }

  /** See what happened to its process. Calls that come meanwhile are answered by another look. */
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

  /** Stop reporting it. Its output stays until it is removed. */
  forget(): void {
    if (!this.isEnded || this.#record.forgottenWallMs !== null) return;
    this.#record = { ...this.#record, forgottenWallMs: this.#services.clock.wallMs() };
    this.#save();
    this.#program?.remove().catch((error: unknown) => {
      this.#log.warn({ err: error }, "what is left of an execution cannot be removed");
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
    this.#program?.close();
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
    const program = this.#program;
    if (program === null) return this.#launchAgain();
    const isLate = this.#services.clock.nowMs() - this.#launchedAtMs > LAUNCH_LIMIT_MS;
    const verdict = await program.look(isLate);
    // Until what runs it answers again nothing is known of it, and so nothing changes.
    if (verdict.kind === "unreachable") {
      // What ran in another boot no longer runs; the engine had its time to say how it ended.
      const isOver = !this.#isOfThisBoot && this.#services.clock.nowMs() - this.#launchedAtMs > ANOTHER_BOOT_MS;
      if (isOver) this.#dispatch({ kind: "exited", exit: null });
      return;
    }
    if (!this.#isOfThisBoot && verdict.kind !== "exited" && verdict.kind !== "launch-failed") {
      // What ran in another boot no longer runs, whatever has its name now.
      this.#dispatch({ kind: "exited", exit: null });
      return;
    }
    switch (verdict.kind) {
      case "wait":
        return;
      case "not-launched":
        // A keeper that was killed before the launch, or before it was taken on, which can be done once.
        if (this.#launch === "over" && isLate) {
          this.#dispatch({ kind: "launch-failed", message: "its launch was not taken on" });
        } else this.#launchAgain();
        return;
      case "runs":
        this.#dispatch({ kind: "launched", about: verdict.about });
        return;
      case "launch-failed":
        this.#dispatch({ kind: "launch-failed", message: verdict.message });
        // Where it began once, and what it wrote down was lost.
        this.#dispatch({ kind: "exited", exit: null });
        return;
      case "exited":
        if (this.isStarting) this.#dispatch({ kind: "launched", about: verdict.about });
        this.#dispatch({ kind: "exited", exit: verdict.exit }, verdict.wallMs ?? undefined);
        return;
    }
  }

  /** What an earlier keeper was killed before it launched. */
  #launchAgain(): void {
    if (this.#isAdopted) this.queue();
  }

  /** End one that is stopped while it waits for its turn: none of it was begun. */
  #endUnlaunched(): void {
    const { phase } = this.#record.state;
    if (this.#launch !== "queued" || phase.kind !== "starting" || phase.stop === null) return;
    this.#dispatch({ kind: "launch-failed", message: "it was stopped before it was started" });
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
      this.#leaveQueue();
      this.#logEnd(state);
    }
    this.#setTimer();
  }

  #carryOut(effect: ExecutionEffect): void {
    switch (effect.kind) {
      case "save":
        this.#save();
        return;
      case "signal":
        void this.#saving
          .then(() => this.#program?.signal(effect.signal))
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

  /** Kill all its processes, and release what it had once it has ended. */
  async #kill(): Promise<void> {
    try {
      await this.#program?.kill();
      if (this.isEnded) {
        await this.#saving;
        await this.#program?.release();
      }
    } catch (error) {
      this.#log.error({ err: error }, "execution cannot be killed");
    }
    // Where nothing tells of its end.
    if (!this.isEnded) await this.look();
  }

  async #check(): Promise<void> {
    const result = await this.#program?.check();
    if (result === undefined) return;
    const { passed, message } = result;
    this.#dispatch(passed === null ? { kind: "unchecked", message } : { kind: "checked", passed, message });
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

  async #openOutput(): Promise<ExecutionOutput> {
    const rules = this.#spec.ok ? this.#spec.plan.output : { maxFileBytes: 1, maxFiles: 1 };
    return ExecutionOutput.open(this.#directory, rules, this.#log);
  }
}
