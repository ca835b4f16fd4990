import { createHash } from "node:crypto";
import { type Logger, Loop, type Running, startTasks, systemClock } from "@rollcall/process";
import { beginExecution, type NeverStarted, neverStarted } from "./execution/execution-machine.ts";
import type { ExecutionState } from "./execution/execution-state.ts";
import type { Executor, Executors, Standing } from "./execution/executor.ts";
import type { KeeperServices, MachineClock, ToLaunch } from "./execution/keeper-services.ts";
import { KeptExecution } from "./execution/kept-execution.ts";
import { type ExecutionIdentity, type ExecutionRecord, isExecutionId } from "./journal/execution-record.ts";
import type { Journal } from "./journal/journal.ts";
import { LaunchQueue } from "./launch-queue.ts";
import type { OutputPlace } from "./output/execution-output.ts";
import type { StreamName } from "./output/output-plan.ts";
import type { TimeMark } from "./output/output-times.ts";
import { planRetention } from "./retention.ts";
import type { SeenStamp } from "./seen-stamp.ts";
import { NO_RULES, readSpec } from "./spec/read-spec.ts";

/** What a keeper is made of. */
export interface KeeperOptions {
  readonly journal: Journal;
  readonly executors: Executors;
  readonly seen: SeenStamp;
  readonly clock: MachineClock;
  readonly bootId: string;
  readonly log: Logger;
}

/** What a keeper refuses, with the reason as its message. */
export class KeeperRefusal extends Error {
  override readonly name = "KeeperRefusal";
}

/** A piece of output. */
export interface ReadPiece {
  readonly offset: number;
  readonly data: Uint8Array;
  readonly isEnd: boolean;
  /** Whether the requested output starts earlier and is no longer kept. */
  readonly isCut: boolean;
  /** When it was written, where that was asked for. Bytes before the first one have no known time. */
  readonly times: readonly TimeMark[];
}

/** A piece of output to read. */
export interface WantedPiece {
  readonly from: OutputPlace;
  readonly limitBytes: number;
  /** Whether its times are wanted. */
  readonly isTimed?: boolean;
}

/** Executions that have not ended. The scheduler gives a node no more. */
const MOST_RUNNING = 1_000;

const LOOK_EVERY_MS = 2_000;
const TIDY_EVERY_MS = 60_000;

/** Keeps the executions of a machine. Orders may be repeated: each is about one execution, and names it. */
export class Keeper implements Running {
  readonly #services: KeeperServices;
  readonly #seen: SeenStamp;
  readonly #executions = new Map<string, KeptExecution>();
  readonly #listeners = new Set<(record: ExecutionRecord) => void>();
  readonly #launches = new Map<Executor | null, LaunchQueue>();
  #tasks: { close(): Promise<void> } = { close: async () => {} };

  private constructor(options: KeeperOptions) {
    const { seen, ...others } = options;
    this.#seen = seen;
    this.#services = {
      ...others,
      seenAtMs: () => seen.atMs,
      toLaunch: (execution) => this.#toLaunch(execution),
      onChange: (record) => {
        for (const listener of this.#listeners) listener(record);
      },
    };
  }

  /** Take over what earlier keepers have left, and go on from there. */
  static async open(options: KeeperOptions): Promise<Keeper> {
    const { journal, log } = options;
    const keeper = new Keeper(options);
    const records = await journal.load(log);
    const executions = records.map((record) => new KeptExecution(keeper.#services, record));
    for (const one of executions) keeper.#executions.set(one.identity.id, one);
    await Promise.all(executions.map((one) => one.adopt()));
    const running = executions.filter(({ isEnded }) => !isEnded).length;
    log.info({ executions: records.length, running }, "executions adopted");
    const clock = systemClock;
    // Files that shims write are watched; this finds what no watch tells, such as a shim that was killed.
    // One for each executor: an engine that is slow to answer is in the way of no process.
    const looks = Object.entries(keeper.#services.executors).map(([kind, executor]) => {
      return new Loop({ name: `look-${kind}`, clock, everyMs: LOOK_EVERY_MS, turn: () => keeper.#look(executor) });
    });
    const tidy = new Loop({ name: "tidy", clock, everyMs: TIDY_EVERY_MS, turn: () => keeper.tidy() });
    keeper.#tasks = startTasks([...looks, tidy], { log, clock });
    return keeper;
  }

  /** All that is known, whether it is reported or not. */
  records(): readonly ExecutionRecord[] {
    return [...this.#executions.values()].map(({ record }) => record);
  }

  /** How many executions wait for their turn to be started. */
  get waiting(): number {
    return [...this.#launches.values()].reduce((sum, queue) => sum + queue.waiting, 0);
  }

  /** Be told of changes. Returns the function that ends this. */
  subscribe(listener: (record: ExecutionRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Start an execution. One that is known, whatever happened to it, is never started again. Resolves once it is on the
   * disk. Throws KeeperRefusal.
   */
  async start(identity: ExecutionIdentity, logId: string): Promise<void> {
    const known = this.#known(identity.id);
    if (known !== undefined) {
      known.named(logId);
      return known.bind(logId);
    }
    const running = [...this.#executions.values()].filter(({ isEnded }) => !isEnded).length;
    if (running >= MOST_RUNNING) throw new KeeperRefusal(`this machine keeps ${running} executions, and no more`);
    const spec = Buffer.from(identity.spec, "base64");
    if (createHash("sha256").update(spec).digest("hex") !== identity.specDigest) {
      throw new KeeperRefusal(`the spec of execution ${identity.id} has another digest`);
    }
    const read = readSpec(spec);
    const execution = await this.#add(identity, logId, beginExecution(read.ok ? read.plan.rules : read.rules));
    execution.queue();
  }

  /** Stop an execution. One that is not known is recorded as stopped, so that its end can be reported. */
  async stop(identity: ExecutionIdentity, logId: string): Promise<void> {
    const known = this.#known(identity.id);
    if (known !== undefined) {
      known.named(logId);
      return known.stop();
    }
    await this.#end(identity, logId, { cause: "STOPPED", message: "it was stopped before it was started" });
  }

  /** Record that an execution cannot be started, or that it was and is not known here any more. */
  async refuse(identity: ExecutionIdentity, logId: string, end: NeverStarted): Promise<void> {
    const known = this.#known(identity.id);
    if (known !== undefined) return known.named(logId);
    await this.#end(identity, logId, end);
  }

  /** Stop reporting these, unless they run. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#executions.get(id)?.forget();
  }

  /** Note which history knows these. */
  bind(ids: readonly string[], logId: string): void {
    for (const id of ids) this.#executions.get(id)?.bind(logId);
  }

  /** The agent has just heard from the control plane. */
  seen(): void {
    this.#seen.renew();
    for (const execution of this.#executions.values()) execution.wake();
  }

  /** Read a piece of output. Throws KeeperRefusal for an execution that is not known. */
  async read(id: string, stream: StreamName, { from, limitBytes, isTimed = false }: WantedPiece): Promise<ReadPiece> {
    const execution = this.#executions.get(id);
    if (execution === undefined) throw new KeeperRefusal(`there is no output of execution ${id}`);
    const { isEnded } = execution;
    const output = await execution.output();
    // Asked before the piece is read: what comes in between is read next time.
    const isSettled = isEnded && output.isSettled;
    const begin = await output.begin(stream, from);
    const piece = await output.read(stream, begin.offset, limitBytes, isTimed);
    return {
      ...piece,
      isEnd: isSettled && piece.offset + piece.data.length >= output.end(stream),
      isCut: begin.isCut || piece.offset > begin.offset,
    };
  }

  /** Let go of what has ended long ago. */
  async tidy(): Promise<void> {
    const ended = this.records().flatMap(({ identity, state, forgottenWallMs }) => {
      return state.phase.kind === "ended"
        ? [{ id: identity.id, endedWallMs: state.phase.wallMs, forgottenWallMs }]
        : [];
    });
    const { forget, remove } = planRetention(ended, this.#services.clock.wallMs());
    this.forget(forget);
    for (const id of remove) {
      await this.#executions.get(id)?.close();
      this.#executions.delete(id);
      await this.#services.journal.remove(id);
    }
    for (const executor of Object.values(this.#services.executors)) await executor.tidy((id) => this.#standing(id));
  }

  /** End, and leave all executions running. */
  async close(): Promise<void> {
    await this.#tasks.close();
    await Promise.all([...this.#executions.values()].map((execution) => execution.close()));
    await this.#seen.close();
  }

  #known(id: string): KeptExecution | undefined {
    if (!isExecutionId(id)) throw new KeeperRefusal(`${JSON.stringify(id)} is not the id of an execution`);
    return this.#executions.get(id);
  }

  async #end(identity: ExecutionIdentity, logId: string, end: NeverStarted): Promise<void> {
    await this.#add(identity, logId, neverStarted(NO_RULES, end, this.#services.clock.wallMs()));
  }

  async #add(identity: ExecutionIdentity, logId: string, state: ExecutionState): Promise<KeptExecution> {
    const { bootId, executors, journal, onChange } = this.#services;
    const record: ExecutionRecord = { identity, logId, bootId, state, forgottenWallMs: null };
    const execution = new KeptExecution(this.#services, record);
    // Before anything is awaited: a second order for the same execution must find it.
    this.#executions.set(identity.id, execution);
    try {
      // What still runs of one whose record was lost is nothing that a keeper could take over.
      if (state.phase.kind === "ended") for (const one of Object.values(executors)) await one.end(identity.id);
      await journal.create(record);
    } catch (error) {
      this.#executions.delete(identity.id);
      throw error;
    }
    onChange(execution.record);
    return execution;
  }

  #toLaunch(execution: ToLaunch): () => void {
    const { executor } = execution;
    const queue = this.#launches.get(executor) ?? new LaunchQueue(executor?.mostLaunching ?? 1, this.#services.log);
    this.#launches.set(executor, queue);
    return queue.add(execution);
  }

  async #look(executor: Executor): Promise<void> {
    const mine = [...this.#executions.values()].filter((one) => !one.isEnded && one.executor === executor);
    if (mine.length === 0) return;
    const isToBeLookedAt = await executor.survey();
    for (const one of mine) if (one.isStarting || isToBeLookedAt(one.identity.id)) await one.look();
  }

  #standing(id: string): Standing {
    const record = this.#executions.get(id)?.record;
    if (record === undefined) return "unknown";
    if (record.forgottenWallMs !== null) return "forgotten";
    return record.state.phase.kind === "ended" ? "ended" : "kept";
  }
}
