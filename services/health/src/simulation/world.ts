import type { ReportHeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Core } from "../core.ts";
import type { SessionHost } from "../session/session-host.ts";
import type { UnaryDesk } from "../unary/unary-desk.ts";
import type { UnaryAnswer } from "../unary/unary-sessions.ts";
import type { Invariants, Observer } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedRecord } from "./simulated-record.ts";
import type { Reached, SimulatedWork, WorkFrameOfServer } from "./simulated-work.ts";

/** A process of health, as others see it. */
export interface WorldProcess {
  readonly instance: string;
  readonly slot: number;
  readonly core: Core;
  readonly host: SessionHost;
  readonly unary: UnaryDesk;
  /** What really happened to it. */
  readonly observer: Observer;
  readonly isAlive: boolean;
  /** Whether new agents are kept away. */
  readonly isHidden: boolean;
  /** Take the call of an agent. It rejects with the error that the agent gets. */
  report(request: ReportHeartbeatRequest): Promise<UnaryAnswer>;
}

/** A stream between an agent and a process. */
export interface WorldStream {
  readonly process: WorldProcess;
}

/** An agent, as what disturbs it sees it. */
export interface WorldAgent {
  readonly index: number;
  /** Whether it runs and is not stopped. */
  readonly isUp: boolean;
  /** Begin, some time within `withinMs`. */
  start(withinMs: number): void;
  /** Die without a word. */
  crash(): void;
  goodbye(): void;
  /** Be stopped: nothing is sent or read. */
  stop(): void;
  resume(): void;
  /** Move to another replica. */
  move(): void;
  /** What its timers would do; to be called every second. */
  look(): void;
}

/** An agent that holds a stream, as what reaches it sees it. */
export interface StreamAgent {
  readonly index: number;
  onWelcome(stream: WorldStream): void;
  onAck(stream: WorldStream): void;
  onMove(stream: WorldStream): void;
  /** A frame about work; see WorkLane for when it comes. */
  onWork(stream: WorldStream, frame: WorkFrameOfServer): void;
  /** Whether it takes such a frame of this stream now. */
  readiness(stream: WorldStream): "ready" | "later" | "gone";
  /** Its stream was ended, and it may come back after this time. */
  onEnd(stream: WorldStream, retryAfterMs: number): void;
}

/** What agents and replicas live in. */
export interface World {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly invariants: Invariants;
  /** Null where nodes run none. */
  readonly work: SimulatedWork | null;
  readonly agents: readonly WorldAgent[];
  /** Places in which one replica at a time can run. */
  readonly slots: number;
  /** Numbers in [0, 1). */
  random(): number;
  /** The replica that takes connections there. */
  processAt(slot: number): WorldProcess | null;
  /** The replica of that name, if its process lives. */
  processNamed(instance: string): WorldProcess | null;
  isStopped(process: Reached): boolean;
  /** Let something reach a process: at once, when it goes on if it is stopped, never if it is dead. */
  deliver(process: Reached, run: () => void): void;
  /** Let a process call the record. It rejects as a broken connection does, which says nothing about what was done. */
  callRecord<T>(process: Reached, carryOut: () => T): Promise<T>;
}
