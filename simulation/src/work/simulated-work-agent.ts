import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  applyExecutions,
  beginReports,
  type DesiredWork,
  dropPartial,
  executionsDigest,
  hexOf,
  type LiveWork,
  type MachineWork,
  NOTHING_DESIRED,
  planWork,
  pruneForgotten,
  type ReportEvent,
  type ReportState,
  reportDueMs,
  reportParts,
  stepReports,
  usefulSpecs,
  type WorkAction,
} from "@rollcall/agent/work";
import { ExecutionReportSchema, type Executions, type SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import { type ExecutionObservation, ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { type Execution, toKept } from "@rollcall/keeper/execution";
import type { SimulatedWorkAgent, WorkFrameOfServer } from "../health/index.ts";
import type { MachineWorld, SimulatedKeeper } from "./simulated-keeper.ts";

type Send = Parameters<SimulatedWorkAgent["opened"]>[0];

const KEEPER_MS = 500;
const PLAN_EVERY_MS = 15_000;
const AWAKE_AGAIN_MS = 1_000;

/** The part of an agent's session that concerns executions. */
interface WorkSession {
  readonly send: Send;
  reports: ReportState;
  /** The executions in unacknowledged reports, keyed by report number. */
  readonly unacknowledged: Map<number, readonly string[]>;
  logId: string | null;
  /** Executions that the store knows. They are bound to the store's history as soon as its id is known. */
  readonly toBind: Set<string>;
}

/**
 * The part of an agent that handles executions. The agent's own code makes the decisions and is called in the agent's
 * order; sockets, files and timers are simulated. Its memory ends with its process, and the next process learns the
 * state from the keeper.
 */
export class WorkAgent implements SimulatedWorkAgent {
  readonly #keeper: SimulatedKeeper;
  readonly #world: MachineWorld;
  readonly #isAwake: () => boolean;
  readonly #kept = new Map<string, LiveWork>();
  readonly #met = new Set<string>();
  readonly #specs = new Map<string, Uint8Array | null>();
  #desired: DesiredWork = NOTHING_DESIRED;
  #session: WorkSession | null = null;
  #life = 0;
  #isPlanning = false;
  #isScanning = false;
  #digest: bigint | null = null;
  #toldDigest = 0n;

  constructor(keeper: SimulatedKeeper, world: MachineWorld, isAwake: () => boolean) {
    this.#keeper = keeper;
    this.#world = world;
    this.#isAwake = isAwake;
    this.#learn();
  }

  get toldDigest(): bigint {
    return this.#toldDigest;
  }

  get isRunning(): boolean {
    return [...this.#kept.values()].some(({ observation }) => observation.state !== ObservedState.ENDED);
  }

  opened(send: Send): void {
    this.#desired = dropPartial(this.#desired);
    const reports = beginReports(true, this.#world.nowMs());
    this.#session = { send, reports, unacknowledged: new Map(), logId: null, toBind: new Set() };
    this.#toldDigest = 0n;
    this.seen();
    this.#wait(this.#session);
    this.#planSoon();
    if (!this.#isScanning) this.#scanAgain();
  }

  receive(frame: WorkFrameOfServer): void {
    const session = this.#session;
    if (session === null) return;
    this.seen();
    switch (frame.case) {
      case "executions":
        this.#executions(session, frame.value);
        return;
      case "spec":
        this.#spec(session, frame.value);
        return;
      case "reportAck": {
        const number = Number(frame.value.number);
        for (const [of, named] of session.unacknowledged) {
          if (of > number) continue;
          for (const id of named) session.toBind.add(id);
          session.unacknowledged.delete(of);
        }
        this.#bindReported(session);
        this.#dispatch(session, { kind: "acked", number });
      }
    }
  }

  seen(): void {
    this.#keeper.seen();
  }

  closed(): void {
    this.#session = null;
  }

  crashed(): void {
    this.#session = null;
    this.#life += 1;
    this.#isPlanning = false;
    this.#isScanning = false;
    this.#desired = NOTHING_DESIRED;
    this.#specs.clear();
    this.#met.clear();
    this.#learn();
  }

  /** Read the keeper's state when an agent connects. */
  #learn(): void {
    this.#kept.clear();
    this.#digest = null;
    for (const record of this.#keeper.records()) this.#take(record);
    this.#keeper.follow((record) => this.#changed(record));
  }

  #take(record: Execution): string | null {
    const { observation, logId, forgotten } = toKept(record);
    if (observation === undefined) return null;
    const before = this.#kept.get(observation.id);
    if (forgotten) {
      this.#met.delete(observation.id);
      if (!this.#kept.delete(observation.id)) return null;
    } else {
      this.#kept.set(observation.id, { observation, logId });
      this.#met.add(observation.id);
      if (before?.observation.change === observation.change) {
        if (before.logId !== logId) this.#planSoon();
        return null;
      }
    }
    this.#digest = null;
    return observation.id;
  }

  #changed(record: Execution): void {
    const id = this.#take(record);
    if (id === null) return;
    const { wantedSpecs } = planWork(this.#desired, this.#machine());
    if (this.#session !== null) this.#dispatch(this.#session, { kind: "changed", ids: [id], wantedSpecs });
    this.#planSoon();
  }

  #executions(session: WorkSession, frame: Executions): void {
    this.#desired = applyExecutions(this.#desired, frame);
    session.logId = frame.logId;
    this.#bindReported(session);
    const useful = usefulSpecs(this.#desired);
    for (const digest of this.#specs.keys()) if (!useful.has(digest)) this.#specs.delete(digest);
    if (frame.reportWanted) this.#dispatch(session, { kind: "asked" });
    this.#planSoon();
  }

  /** Bind the reported executions to the store history that has committed the reports. */
  #bindReported({ logId, toBind }: WorkSession): void {
    if (logId === null) return;
    this.#keeper.bind([...toBind], logId);
    toBind.clear();
  }

  #spec(session: WorkSession, { digest, spec }: SpecFrame): void {
    const name = hexOf(digest);
    this.#dispatch(session, { kind: "spec", digest: name });
    if (!usefulSpecs(this.#desired).has(name)) return;
    const isRight = createHash("sha256").update(spec).digest("hex") === name;
    if (spec.length > 0 && !isRight) throw new Error(`the digest of a spec is not ${name}`);
    this.#specs.set(name, spec.length === 0 ? null : spec);
    this.#planSoon();
  }

  /** Request missing specs again, because they may have been lost. */
  #scanAgain(): void {
    this.#isScanning = true;
    this.#later(PLAN_EVERY_MS, () => {
      this.#planSoon();
      this.#scanAgain();
    });
  }

  #planSoon(): void {
    if (this.#isPlanning) return;
    this.#isPlanning = true;
    this.#later(this.#world.random() * KEEPER_MS, () => {
      this.#isPlanning = false;
      this.#plan();
    });
  }

  #plan(): void {
    this.#desired = pruneForgotten(this.#desired, this.#kept);
    for (const id of this.#met) {
      if (!this.#kept.has(id) && !this.#desired.references.has(id)) this.#met.delete(id);
    }
    const { actions, wantedSpecs } = planWork(this.#desired, this.#machine());
    if (wantedSpecs.length > 0 && this.#session !== null) {
      this.#dispatch(this.#session, { kind: "changed", ids: [], wantedSpecs });
    }
    for (const action of actions) this.#carryOut(action);
  }

  #machine(): MachineWork {
    return { kept: this.#kept, met: this.#met, specs: this.#specs };
  }

  #carryOut(action: WorkAction): void {
    const { logId } = this.#desired;
    switch (action.kind) {
      case "start":
        this.#keeper.start(action.reference, action.spec, logId);
        return;
      case "stop":
        this.#keeper.stop(action.reference, logId);
        return;
      case "refuse":
        this.#keeper.refuse(action.reference, logId, {
          ...{ cause: action.isLost ? "GONE" : "START_FAILED", message: action.message },
        });
        return;
      case "forget":
        this.#keeper.forget(action.ids);
        return;
      case "bind":
        this.#keeper.bind(action.ids, logId);
    }
  }

  #dispatch(session: WorkSession, event: ReportEvent): void {
    const { state, effects } = stepReports(session.reports, event, this.#world.nowMs());
    session.reports = state;
    for (const effect of effects) {
      if (effect.kind === "send-report") this.#report(session, effect.number, effect.ids);
      else {
        const digests = effect.digests.map((digest) => new Uint8Array(Buffer.from(digest, "hex")));
        session.send({ kind: "want-specs", digests });
      }
    }
    this.#wait(session);
  }

  #report(session: WorkSession, number: number, ids: readonly string[] | null): void {
    const named = ids ?? [...this.#kept.keys()].sort();
    const observations: readonly ExecutionObservation[] = named.flatMap((id) => this.#kept.get(id)?.observation ?? []);
    this.#digest ??= executionsDigest([...this.#kept.values()].map(({ observation }) => observation));
    this.#toldDigest = this.#digest;
    session.unacknowledged.set(
      number,
      observations.map(({ id }) => id),
    );
    const whole = ids === null;
    for (const part of reportParts({ number, whole, digest: this.#digest }, observations)) {
      session.send({ kind: "report", report: create(ExecutionReportSchema, part) });
    }
  }

  #wait(session: WorkSession): void {
    const dueMs = reportDueMs(session.reports);
    if (dueMs === null) return;
    this.#later(Math.max(0, dueMs - this.#world.nowMs()), () => {
      const nowDueMs = reportDueMs(session.reports);
      if (this.#session !== session || nowDueMs === null || nowDueMs > this.#world.nowMs()) return;
      this.#dispatch(session, { kind: "due" });
    });
  }

  /**
   * Run a function after this time. The timer belongs to the agent's process. It waits while the process is stopped,
   * and ends with it.
   */
  #later(ms: number, run: () => void): void {
    const life = this.#life;
    this.#world.after(ms, () => {
      if (life !== this.#life) return;
      if (this.#isAwake()) run();
      else this.#later(AWAKE_AGAIN_MS, run);
    });
  }
}
