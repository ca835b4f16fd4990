import { createHash } from "node:crypto";
import type { Executions, SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type Greeting, type LiveExecution, OutputStream } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import type { NodeCondition } from "@rollcall/domain";
import { type Clock, type Logger, Loop, type Task } from "@rollcall/process";
import { AbsentKeeper } from "./absent-keeper.ts";
import {
  applyExecutions,
  castOut,
  type DesiredWork,
  dropPartial,
  hexOf,
  type LiveWork,
  NOTHING_DESIRED,
  planWork,
  pruneForgotten,
  usefulSpecs,
  type WorkAction,
} from "./desired-work.ts";
import { keeperCondition } from "./keeper-condition.ts";
import {
  type KeeperAccess,
  KeeperLink,
  type KeeperListener,
  type KeeperPort,
  KeeperRefused,
  type KeeperRequestInit,
} from "./keeper-link.ts";
import type { OutputSource } from "./output-source.ts";
import { executionsDigest } from "./report-parts.ts";
import type { WorkChange, WorkFeed } from "./session-work.ts";

export interface AgentWorkOptions {
  /**
   * How to reach the keeper; null for a machine without one. Such a machine runs nothing, and reports so for every
   * execution that it is asked to start or stop.
   */
  readonly keeper: KeeperAccess | null;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Creates the connection to the keeper, for tests. Default: one to `keeper`. */
  readonly connectKeeper?: (listener: KeeperListener) => KeeperPort;
  /** Called when the machine's offer has changed: its keeper has reported a change, or no longer responds. */
  readonly onOffer?: () => void;
}

/** Maximum time between two planning runs. Each run retries everything that is still missing on the machine. */
const PLAN_EVERY_MS = 15_000;

/** Time between two checks of whether the keeper is down. */
const CHECK_EVERY_MS = 2_000;

/** The minimum time between two messages to the keeper that the control plane is reachable. */
const SEEN_EVERY_MS = 1_000;

/** Connects the control plane, which decides what should run, with the keeper, which runs it. */
export class AgentWork implements WorkFeed, KeeperListener {
  /** The tasks that the agent must run. */
  readonly tasks: readonly Task[];
  readonly #options: AgentWorkOptions;
  readonly #link: KeeperPort;
  readonly #planning: Loop;
  readonly #checking: Loop;
  readonly #sinceMs: number;
  /** The reasons of the conditions that were last reported. */
  #checked = "";
  readonly #listeners = new Set<(change: WorkChange) => void>();
  readonly #kept = new Map<string, LiveWork>();
  /** Executions that the keeper has or had, and that it was not asked to forget. */
  readonly #met = new Set<string>();
  readonly #specs = new Map<string, Uint8Array | null>();
  /** Executions listed since the greeting; null once the list is complete. */
  #named: Set<string> | null = new Set();
  #changed = new Set<string>();
  #desired: DesiredWork = NOTHING_DESIRED;
  /**
   * Whether the node was rejected, banned or deleted in the store history of `#desired`, and that history has sent no
   * complete list since.
   */
  #isCastOut = false;
  /** The store history of the current session; null before its first Executions. */
  #sessionLogId: string | null = null;
  readonly #toBind = new Set<string>();
  #wantedSpecs: readonly string[] = [];
  #isKnown = false;
  #isTelling = false;
  #greeting: Greeting | null = null;
  #onMet: () => void = () => {};
  #seenAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: AgentWorkOptions) {
    this.#options = options;
    const { clock, keeper, connectKeeper } = options;
    this.met = new Promise((resolve) => {
      this.#onMet = resolve;
    });
    if (connectKeeper !== undefined) this.#link = connectKeeper(this);
    else if (keeper === null) this.#link = new AbsentKeeper(this, () => clock.wallMs());
    else this.#link = new KeeperLink({ ...options, access: keeper }, this);
    this.#planning = new Loop({ name: "plan-work", clock, everyMs: PLAN_EVERY_MS, turn: () => this.#plan() });
    this.#sinceMs = clock.nowMs();
    this.#checking = new Loop({ name: "check-keeper", clock, everyMs: CHECK_EVERY_MS, turn: () => this.#check() });
    this.tasks = [{ name: "keeper", run: (signal) => this.#link.run(signal) }, this.#planning, this.#checking];
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Resolves when a keeper has sent its greeting. */
  readonly met: Promise<void>;

  /** Why the machine runs no new work. */
  get conditions(): readonly NodeCondition[] {
    const { keeper, clock } = this.#options;
    const isKnown = this.#greeting !== null;
    const contact = { sinceMs: this.#sinceMs, heardAtMs: this.#link.heardAtMs, isKnown };
    const down = keeper?.isNeeded === true ? keeperCondition(contact, clock.nowMs()) : null;
    return down === null ? (this.#greeting?.conditions ?? []) : [down];
  }

  /**
   * The keeper's description of itself; null before it was received and while the keeper is down. A keeper that is
   * only briefly unreachable keeps its offer.
   */
  get greeting(): Greeting | null {
    return this.conditions.some(({ reason }) => reason === "KEEPER_DOWN") ? null : this.#greeting;
  }

  get isRunning(): boolean {
    return [...this.#kept.values()].some(({ observation }) => observation.state !== ObservedState.ENDED);
  }

  observations(ids: readonly string[] | null): readonly ExecutionObservation[] {
    const named = ids ?? [...this.#kept.keys()].sort();
    return named.flatMap((id) => this.#kept.get(id)?.observation ?? []);
  }

  digest(): bigint {
    return executionsDigest([...this.#kept.values()].map(({ observation }) => observation));
  }

  subscribe(listener: (change: WorkChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  opened(): void {
    this.#desired = dropPartial(this.#desired);
    this.#sessionLogId = null;
    this.#toBind.clear();
    this.seen();
  }

  executions(frame: Executions): void {
    this.#desired = applyExecutions(this.#desired, frame);
    if (frame.whole) this.#isCastOut = false;
    this.#sessionLogId = frame.logId;
    this.#bindReported();
    this.#letGoOfSpecs();
    this.#planning.call();
  }

  spec({ digest, spec }: SpecFrame): void {
    const name = hexOf(digest);
    if (!usefulSpecs(this.#desired).has(name)) return;
    const isGone = spec.length === 0;
    if (!isGone && createHash("sha256").update(spec).digest("hex") !== name) {
      this.#options.log.error({ digest: name }, "spec does not have the requested digest, ignoring it");
      return;
    }
    this.#specs.set(name, isGone ? null : spec);
    this.#planning.call();
  }

  reported(ids: readonly string[]): void {
    for (const id of ids) this.#toBind.add(id);
    this.#bindReported();
  }

  castOut(logId: string): void {
    this.#isCastOut = true;
    this.#desired = castOut(this.#desired, this.#kept, logId);
    this.#options.log.warn(
      { executions: this.#desired.references.size },
      "node was rejected, banned or deleted, stopping its executions",
    );
    this.#planning.call();
  }

  seen(): void {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs - this.#seenAtMs < SEEN_EVERY_MS) return;
    this.#seenAtMs = nowMs;
    this.#ask({ case: "seen", value: {} });
  }

  readonly output: OutputSource = {
    read: async (id, output, from, { limitBytes: limit, times: isTimed = false }) => {
      const stream = output === 2 ? OutputStream.STDERR : OutputStream.STDOUT;
      const place = "tailBytes" in from ? { tail: from.tailBytes } : from;
      const value = { id, stream, limit, times: isTimed, ...place };
      const answered = await this.#link.request({ case: "readOutput", value }).catch((error: unknown) => {
        // Return null only for a refusal, which means that no output is kept. After a failure, the output may still
        // exist in the executor that failed.
        if (error instanceof KeeperRefused && !error.hasFailed) return null;
        throw error;
      });
      if (answered === null) return null;
      const { reply } = answered;
      if (reply.case !== "output") throw new Error("the keeper answered without output");
      const { offset, data, ended: isEnd, cut: isCut, times } = reply.value;
      return { offset, data, isEnd, isCut, times };
    },
  };

  onGreeting(greeting: Greeting): void {
    this.#named = new Set();
    this.onOffer(greeting);
  }

  onOffer(greeting: Greeting): void {
    this.#greeting = greeting;
    this.#onMet();
    const { problem, executors } = greeting;
    if (problem !== "") this.#options.log.error({ problem, executors }, "the keeper does not offer all executors");
    this.#options.onOffer?.();
  }

  onGone(): void {
    this.#checking.call();
  }

  /** Report the keeper as down if it has not responded for long enough, and as up again afterwards. */
  async #check(): Promise<void> {
    const text = this.conditions.map(({ reason }) => reason).join();
    if (text === this.#checked) return;
    this.#checked = text;
    // Log this condition only at debug level, because the keeper needs a moment to respond after every start. If it
    // does not respond, another condition follows.
    const level = text === "EXECUTORS_UNKNOWN" ? "debug" : "warn";
    if (text !== "") this.#options.log[level]({ conditions: this.conditions }, "this machine runs no new work");
    this.#options.onOffer?.();
  }

  onChanged({ observation, logId, forgotten }: LiveExecution): void {
    if (observation === undefined) return;
    const { id } = observation;
    if (forgotten) {
      this.#met.delete(id);
      if (!this.#kept.delete(id)) return;
    } else {
      const before = this.#kept.get(id);
      this.#kept.set(id, { observation, logId });
      this.#met.add(id);
      this.#named?.add(id);
      if (before?.observation.change === observation.change) {
        // Plan again, because the execution is now bound to another store history, whose desired state applies from
        // now on.
        if (before.logId !== logId) this.#planning.call();
        return;
      }
    }
    this.#tell([id]);
    this.#planning.call();
  }

  onListed(): void {
    const gone = [...this.#kept.keys()].filter((id) => this.#named?.has(id) === false);
    for (const id of gone) this.#kept.delete(id);
    this.#named = null;
    this.#isKnown = true;
    this.#tell(gone);
    this.#planning.call();
  }

  async #plan(): Promise<void> {
    if (!this.#isKnown || this.#named !== null) return;
    this.#bindReported();
    // Also end the executions that were still starting, or not yet listed, when the node was excluded.
    if (this.#isCastOut) this.#desired = castOut(this.#desired, this.#kept, this.#desired.logId);
    this.#desired = pruneForgotten(this.#desired, this.#kept);
    this.#letGoOfMet();
    const machine = { kept: this.#kept, met: this.#met, specs: this.#specs };
    const { actions, wantedSpecs } = planWork(this.#desired, machine);
    this.#wantedSpecs = wantedSpecs;
    if (wantedSpecs.length > 0) this.#tell([]);
    // Carry out the actions one after the other. Each action takes as long as a write to the keeper's disk, and the
    // resulting change arrives with the keeper's response.
    const { logId } = this.#desired;
    const wasCastOut = this.#isCastOut;
    for (const action of actions) {
      // Stop, because the plan is outdated: the node was excluded or readmitted, or its desired state now comes from
      // another store history. Each of these changes has triggered another planning run.
      if (this.#desired.logId !== logId || this.#isCastOut !== wasCastOut) return;
      await this.#carryOut(action);
    }
  }

  async #carryOut(action: WorkAction): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#link.request(this.#toRequest(action));
    } catch (error) {
      if (action.kind !== "start") {
        log.warn({ err: error, action: action.kind }, "keeper did not carry out a request");
        return;
      }
      const { reference } = action;
      log.warn({ err: error, execution_id: reference.id }, "keeper did not start an execution");
      // A keeper that cannot be reached has refused nothing. The next planning run repeats the start.
      if (!(error instanceof KeeperRefused)) return;
      const { message } = error;
      await this.#link.request(this.#toRequest({ kind: "refuse", reference, message, isLost: false })).catch(() => {});
    }
  }

  #toRequest(action: WorkAction): KeeperRequestInit {
    const { logId } = this.#desired;
    const { nodeId } = this.#options;
    switch (action.kind) {
      case "start": {
        const { reference, spec } = action;
        return { case: "start", value: { reference, spec, logId, nodeId } };
      }
      case "stop":
        return { case: "stop", value: { reference: action.reference, logId } };
      case "refuse": {
        const { reference, isLost: lost } = action;
        return { case: "refuse", value: { reference, message: action.message.slice(0, 512), logId, lost } };
      }
      case "forget":
        return { case: "forget", value: { ids: [...action.ids] } };
      case "bind":
        return { case: "bind", value: { ids: [...action.ids], logId } };
    }
  }

  /** Bind executions to the session's store history once it has committed their report. */
  #bindReported(): void {
    const logId = this.#sessionLogId;
    if (logId === null) return;
    const ids = [...this.#toBind].filter((id) => {
      const one = this.#kept.get(id);
      return one !== undefined && one.logId !== logId;
    });
    this.#toBind.clear();
    if (ids.length === 0) return;
    this.#link.request({ case: "bind", value: { ids, logId } }).catch(() => {
      // The next planning run tries again, because the session does not report these executions again.
      if (this.#sessionLogId === logId) for (const id of ids) this.#toBind.add(id);
    });
  }

  /** Forget executions that neither the keeper nor the desired list knows. */
  #letGoOfMet(): void {
    for (const id of this.#met) {
      if (!this.#kept.has(id) && !this.#desired.references.has(id)) this.#met.delete(id);
    }
  }

  #letGoOfSpecs(): void {
    const useful = usefulSpecs(this.#desired);
    for (const digest of this.#specs.keys()) if (!useful.has(digest)) this.#specs.delete(digest);
  }

  #ask(request: KeeperRequestInit): void {
    // Ignore a failure, because the keeper receives everything that matters when the connection is back.
    this.#link.request(request).catch(() => {});
  }

  /** Notify sessions, once for all changes that happen at the same moment. */
  #tell(ids: readonly string[]): void {
    for (const id of ids) this.#changed.add(id);
    if (this.#isTelling || !this.#isKnown) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      const change = { ids: [...this.#changed], wantedSpecs: this.#wantedSpecs };
      this.#changed = new Set();
      for (const listener of this.#listeners) listener(change);
    });
  }
}
