import type { ExecutionReference } from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  beginExecution,
  dueAtMs,
  type ExecutionEffect,
  type ExecutionEvent,
  type ExecutionRecord,
  type NeverStarted,
  NO_RULES,
  neverStarted,
  readSpec,
  stepExecution,
  toIdentity,
} from "@rollcall/keeper/execution";

/** What a machine has of the world around it. */
export interface MachineWorld {
  nowMs(): number;
  wallMs(): number;
  random(): number;
  after(ms: number, run: () => void): void;
  /** A process runs. */
  started(id: string): void;
  /** A process has ended. */
  ended(id: string): void;
  /** A history of the record wants a process to stop. */
  stopping(id: string, logId: string): void;
  /** How a process of this job ends by itself: after so long, with this code; null for one that runs on. */
  lifeOf(job: string): { readonly ms: number; readonly code: number } | null;
}

const LAUNCH_MS = 2_000;
const EXIT_MS = 4_000;
/** What has ended and was forgotten is removed after this; a node is told again to forget what it still reports. */
const KEPT_MS = 86_400_000;

interface Kept {
  record: ExecutionRecord;
  /** Rises with each process, so that what was to happen to an earlier one does not. */
  life: number;
  isRunning: boolean;
}

/** A machine and its keeper: the keeper's reducer decides, and what it starts are processes of the simulation. */
export class SimulatedKeeper {
  readonly nodeId: string;
  readonly #world: MachineWorld;
  readonly #kept = new Map<string, Kept>();
  #onChange: (record: ExecutionRecord) => void = () => {};
  #seenAtMs = 0;

  constructor(nodeId: string, world: MachineWorld) {
    this.nodeId = nodeId;
    this.#world = world;
  }

  /** What runs, whether it is wanted or not. */
  running(): readonly string[] {
    return [...this.#kept].flatMap(([id, { isRunning }]) => (isRunning ? [id] : []));
  }

  records(): readonly ExecutionRecord[] {
    return [...this.#kept.values()].map(({ record }) => record);
  }

  /** Tell of changes; one listener at a time. */
  follow(onChange: (record: ExecutionRecord) => void): void {
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
    } else this.#end(reference, logId, { cause: "STOPPED", message: "it was stopped before it was started" });
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

  /** One that was restored is told again what the history before has let be forgotten. */
  #named(one: Kept, logId: string): void {
    if (one.record.logId === logId || one.record.forgottenWallMs === null) return;
    this.#put(one, { logId, forgottenWallMs: null });
  }

  /** The agent heard from the control plane. */
  seen(): void {
    this.#seenAtMs = this.#world.nowMs();
  }

  /** The machine starts again: nothing of what ran is there. */
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
      readonly state: ExecutionRecord["state"];
    },
  ): void {
    const { job, spec, logId, state } = of;
    const identity = toIdentity(reference, { job, nodeId: this.nodeId, spec });
    const record: ExecutionRecord = { identity, logId, bootId: "boot", state, forgottenWallMs: null };
    this.#kept.set(reference.id, { record, life: 0, isRunning: false });
    this.#onChange(record);
  }

  #put(one: Kept, part: Partial<ExecutionRecord>): void {
    one.record = { ...one.record, ...part };
    this.#onChange(one.record);
  }
}
