import { createHash } from "node:crypto";
import type { Executions, SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type Greeting, type KeptExecution, OutputStream } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
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
  type KeptWork,
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

/** What an agent's part in work is made of. */
export interface AgentWorkOptions {
  /** Null for a machine that has none: it runs nothing, and says so of what it is told to run or to stop. */
  readonly keeper: KeeperAccess | null;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Told when what the machine offers has changed: its keeper has said so, or is gone. */
  readonly onOffer?: () => void;
}

/** What the machine lacks although it should not is looked at again this often. */
const PLAN_EVERY_MS = 15_000;

/** How often it is looked whether the keeper is down. */
const CHECK_EVERY_MS = 2_000;

/** How often the keeper is told at most that the control plane was heard. */
const SEEN_EVERY_MS = 1_000;

/** Stands between the control plane, which says what should run, and the keeper, which runs it. */
export class AgentWork implements WorkFeed, KeeperListener {
  /** To be run by the agent. */
  readonly tasks: readonly Task[];
  readonly #options: AgentWorkOptions;
  readonly #link: KeeperPort;
  readonly #planning: Loop;
  readonly #checking: Loop;
  readonly #sinceMs: number;
  /** The reasons that were reported last. */
  #checked = "";
  readonly #listeners = new Set<(change: WorkChange) => void>();
  readonly #kept = new Map<string, KeptWork>();
  /** Executions that the keeper has or had, and that it was not told to forget. */
  readonly #met = new Set<string>();
  readonly #specs = new Map<string, Uint8Array | null>();
  /** Executions that were named since the greeting; null once all have been. */
  #named: Set<string> | null = new Set();
  #changed = new Set<string>();
  #desired: DesiredWork = NOTHING_DESIRED;
  /** Whether the history of `#desired` has cast the node out, and has told no whole list since. */
  #isCastOut = false;
  /** The history that the present session speaks of; null before its first Executions. */
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
    const { clock, keeper } = options;
    this.met = new Promise((resolve) => {
      this.#onMet = resolve;
    });
    this.#link =
      keeper === null
        ? new AbsentKeeper(this, () => clock.wallMs())
        : new KeeperLink({ ...options, access: keeper }, this);
    this.#planning = new Loop({ name: "plan-work", clock, everyMs: PLAN_EVERY_MS, turn: () => this.#plan() });
    this.#sinceMs = clock.nowMs();
    this.#checking = new Loop({ name: "check-keeper", clock, everyMs: CHECK_EVERY_MS, turn: () => this.#check() });
    this.tasks = [{ name: "keeper", run: (signal) => this.#link.run(signal) }, this.#planning, this.#checking];
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** Resolves when a keeper has said what it is. */
  readonly met: Promise<void>;

  /** What keeps the machine from running new work. */
  get conditions(): readonly NodeCondition[] {
    const { keeper, clock } = this.#options;
    const isKnown = this.#greeting !== null;
    const contact = { sinceMs: this.#sinceMs, heardAtMs: this.#link.heardAtMs, isKnown };
    const down = keeper?.isNeeded === true ? keeperCondition(contact, clock.nowMs()) : null;
    return down === null ? (this.#greeting?.conditions ?? []) : [down];
  }

  /**
   * What the keeper said of itself; null before it has, and while it is down. One that is away for a moment offers what
   * it offered.
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
      this.#options.log.error({ digest: name }, "spec has another digest than was asked for, it is not used");
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
    this.#options.log.warn({ executions: this.#desired.references.size }, "node was cast out, its executions end");
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
        // The executor that failed can be the one that has the output.
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

  /** Report the keeper as down when it has been for long enough, and as back. */
  async #check(): Promise<void> {
    const text = this.conditions.map(({ reason }) => reason).join();
    if (text === this.#checked) return;
    this.#checked = text;
    if (text !== "") this.#options.log.warn({ conditions: this.conditions }, "this machine runs no new work");
    this.#options.onOffer?.();
  }

  onChanged({ observation, logId, forgotten }: KeptExecution): void {
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
        // What a history said of it counts once it is bound to that.
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
    // What was being started, or was not listed, when the node was cast out ends too.
    if (this.#isCastOut) this.#desired = castOut(this.#desired, this.#kept, this.#desired.logId);
    this.#desired = pruneForgotten(this.#desired, this.#kept);
    this.#letGoOfMet();
    const machine = { kept: this.#kept, met: this.#met, specs: this.#specs };
    const { actions, wantedSpecs } = planWork(this.#desired, machine);
    this.#wantedSpecs = wantedSpecs;
    if (wantedSpecs.length > 0) this.#tell([]);
    // One after the other: the keeper answers as fast as its disk, and each answer comes with the change that it made.
    const { logId } = this.#desired;
    const wasCastOut = this.#isCastOut;
    for (const action of actions) {
      // Planned for what has been taken back since: that has called for another turn.
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
        log.warn({ err: error, action: action.kind }, "keeper did not do what was asked");
        return;
      }
      const message = error instanceof Error ? error.message : String(error);
      log.warn({ err: error, execution_id: action.reference.id }, "keeper did not start an execution");
      // Where the keeper is away this fails as well, and the start is tried again once it is back.
      const { reference } = action;
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

  /** What was reported to a history, and committed there, is known to it from now on. */
  #bindReported(): void {
    const logId = this.#sessionLogId;
    if (logId === null) return;
    const ids = [...this.#toBind].filter((id) => {
      const one = this.#kept.get(id);
      return one !== undefined && one.logId !== logId;
    });
    this.#toBind.clear();
    if (ids.length > 0) this.#ask({ case: "bind", value: { ids, logId } });
  }

  /** What the keeper has lost, and no list names, is nothing that could be started again. */
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
    // A keeper that is away is told of what counts when it is back.
    this.#link.request(request).catch(() => {});
  }

  /** Tell sessions, once for all that happens at a time. */
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
