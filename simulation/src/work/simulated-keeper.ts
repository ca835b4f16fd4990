import type { ExecutionReference } from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  beginExecution,
  dueAtMs,
  type Execution,
  type ExecutionEffect,
  type ExecutionEvent,
  type NeverStarted,
  NO_RULES,
  neverStarted,
  readSpec,
  stepExecution,
  toIdentity,
} from "@rollcall/keeper/execution";

/** The part of the simulated world that a machine uses. */
export interface MachineWorld {
  nowMs(): number;
  wallMs(): number;
  random(): number;
  after(ms: number, run: () => void): void;
  /** Called when a process has started. */
  started(id: string): void;
  /** Called when a process has ended. */
  ended(id: string): void;
  /** Called before a running process is stopped. `logId` is the store history that the command to stop came from. */
  stopping(id: string, logId: string): void;
  /** Return how long a process of this job runs, and its exit code; null if it runs until it is stopped. */
  lifeOf(job: string): { readonly ms: number; readonly code: number } | null;
}

const LAUNCH_MS = 2_000;
const EXIT_MS = 4_000;
/**
 * How long ended executions are kept after they were forgotten. If a node still reports forgotten executions, the store
 * asks it again to forget them.
 */
const KEPT_MS = 86_400_000;

interface Kept {
  record: Execution;
  /**
   * The number of the process. It rises with each process, so that events scheduled for an earlier process are dropped.
   */
  life: number;
  isRunning: boolean;
}

/**
 * A machine and its keeper. The keeper's shipped reducer makes the decisions; the processes that it starts are
 * simulated.
 */
export class SimulatedKeeper {
  readonly nodeId: string;
  readonly #world: MachineWorld;
  readonly #kept = new Map<string, Kept>();
  #onChange: (record: Execution) => void = () => {};
  #seenAtMs = 0;

  constructor(nodeId: string, world: MachineWorld) {
    this.nodeId = nodeId;
    this.#world = world;
  }

  /** The executions that run, whether they are wanted or not. */
  running(): readonly string[] {
    return [...this.#kept].flatMap(([id, { isRunning }]) => (isRunning ? [id] : []));
  }

  records(): readonly Execution[] {
    return [...this.#kept.values()].map(({ record }) => record);
  }

  /** Set the function to call when an execution changes. */
  follow(onChange: (record: Execution) => void): void {
    this.#onChange = onChange;
  }

  start(reference: ExecutionReference, spec: Uint8Array, logId: string): void {
    const known = this.#kept.get(reference.id);
    if (known !== undefined) {
      this.#named(known, logId);
      this.bind([reference.id], logId);
      return;
    }
    const read = readSpec(spec);
    if (!read.ok) {
      this.refuse(reference, logId, { cause: "START_FAILED", message: read.problem });
      return;
    }
    this.#add(reference, { job: read.plan.job, spec, logId, state: beginExecution(read.plan.rules) });
    this.#world.after(this.#world.random() * LAUNCH_MS, () => this.#launched(reference.id));
  }

  stop(reference: ExecutionReference, logId: string): void {
    const known = this.#kept.get(reference.id);
    if (known?.isRunning === true) this.#world.stopping(reference.id, logId);
    if (known !== undefined) {
      this.#named(known, logId);
      this.#step(reference.id, { kind: "stop" });
    } else this.#end(reference, logId, { cause: "STOPPED", message: "stopped before it was started" });
  }

  refuse(reference: ExecutionReference, logId: string, end: NeverStarted): void {
    const known = this.#kept.get(reference.id);
    if (known === undefined) this.#end(reference, logId, end);
    else this.#named(known, logId);
  }

  forget(ids: readonly string[]): void {
    for (const id of ids) {
      const one = this.#kept.get(id);
      if (one === undefined || one.record.state.phase.kind !== "ended" || one.record.forgottenWallMs !== null) continue;
      this.#put(one, { forgottenWallMs: this.#world.wallMs() });
      this.#world.after(KEPT_MS, () => {
        if (one.record.forgottenWallMs !== null) this.#kept.delete(id);
      });
    }
  }

  bind(ids: readonly string[], logId: string): void {
    for (const id of ids) {
      const one = this.#kept.get(id);
      if (one !== undefined && one.record.logId !== logId) this.#put(one, { logId });
    }
  }

  /**
   * Record that a store history lists the execution. If it is another history than before, the permission to forget the
   * execution no longer holds.
   */
  #named(one: Kept, logId: string): void {
    if (one.record.logId === logId || one.record.forgottenWallMs === null) return;
    this.#put(one, { logId, forgottenWallMs: null });
  }

  /** Record that the agent received something from the control plane. */
  seen(): void {
    this.#seenAtMs = this.#world.nowMs();
  }

  /** Restart the machine. Everything that ran is gone. */
  reboot(): void {
    for (const [id, one] of this.#kept) {
      if (one.record.state.phase.kind === "ended") continue;
      one.life += 1;
      this.#stopProcess(id, one);
      this.#step(id, { kind: "exited", exit: null });
    }
  }

  #launched(id: string): void {
    const one = this.#kept.get(id);
    if (one === undefined || one.record.state.phase.kind !== "starting") return;
    one.isRunning = true;
    this.#world.started(id);
    const { life } = one;
    this.#step(id, { kind: "launched", about: "" });
    const end = this.#world.lifeOf(one.record.identity.job);
    if (end !== null) this.#world.after(end.ms, () => this.#exited(id, life, end.code, null));
  }

  #exited(id: string, life: number, code: number | null, signal: string | null): void {
    const one = this.#kept.get(id);
    if (one?.isRunning !== true || one.life !== life) return;
    this.#stopProcess(id, one);
    this.#step(id, { kind: "exited", exit: { code, signal, memoryKill: { kind: "no" } } });
  }

  #stopProcess(id: string, one: Kept): void {
    if (!one.isRunning) return;
    one.isRunning = false;
    this.#world.ended(id);
  }

  #step(id: string, event: ExecutionEvent): void {
    const one = this.#kept.get(id);
    if (one === undefined) return;
    const { state } = one.record;
    const input = { nowMs: this.#world.nowMs(), wallMs: this.#world.wallMs(), seenAtMs: this.#seenAtMs };
    const next = stepExecution(state, event, input);
    if (next.state.change === state.change) one.record = { ...one.record, state: next.state };
    else this.#put(one, { state: next.state });
    for (const effect of next.effects) this.#carryOut(id, one, effect);
    this.#wait(id, one);
  }

  #carryOut(id: string, one: Kept, effect: ExecutionEffect): void {
    const { life } = one;
    switch (effect.kind) {
      case "signal":
        this.#world.after(this.#world.random() * EXIT_MS, () => this.#exited(id, life, null, effect.signal));
        return;
      case "kill":
        this.#world.after(0, () => this.#exited(id, life, null, "SIGKILL"));
        return;
      case "check":
        this.#world.after(0, () => this.#step(id, { kind: "checked", passed: true, message: "" }));
        return;
      case "save":
        return;
    }
  }

  #wait(id: string, one: Kept): void {
    const atMs = dueAtMs(one.record.state, this.#seenAtMs);
    if (atMs === null) return;
    const { change } = one.record.state;
    const inMs = Math.max(0, atMs - this.#world.nowMs());
    this.#world.after(inMs, () => {
      if (one.record.state.change !== change || this.#kept.get(id) !== one) return;
      const dueMs = dueAtMs(one.record.state, this.#seenAtMs);
      if (dueMs === null) return;
      if (dueMs > this.#world.nowMs()) this.#wait(id, one);
      else this.#step(id, { kind: "due" });
    });
  }

  #end(reference: ExecutionReference, logId: string, end: NeverStarted): void {
    const state = neverStarted(NO_RULES, end, this.#world.wallMs());
    this.#add(reference, { job: "", spec: new Uint8Array(), logId, state });
  }

  #add(
    reference: ExecutionReference,
    of: {
      readonly job: string;
      readonly spec: Uint8Array;
      readonly logId: string;
      readonly state: Execution["state"];
    },
  ): void {
    const { job, spec, logId, state } = of;
    const identity = toIdentity(reference, { job, nodeId: this.nodeId, spec });
    const record: Execution = { identity, logId, bootId: "boot", state, forgottenWallMs: null };
    this.#kept.set(reference.id, { record, life: 0, isRunning: false });
    this.#onChange(record);
  }

  #put(one: Kept, part: Partial<Execution>): void {
    one.record = { ...one.record, ...part };
    this.#onChange(one.record);
  }
}
