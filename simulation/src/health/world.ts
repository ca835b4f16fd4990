import type { ReportHeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import type { Core, LocalSessions, SessionHost, UnaryAnswer } from "@rollcall/health/parts";
import type { Invariants, Observer } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedStore } from "./simulated-store.ts";
import type { Reached, SimulatedWork, WorkFrameOfServer } from "./simulated-work.ts";

/** A health process, as the rest of the simulation uses it. */
export interface WorldProcess {
  readonly instance: string;
  readonly slot: number;
  readonly core: Core;
  readonly host: SessionHost;
  readonly unary: LocalSessions;
  /** The silences that the process should observe, computed from what really happened to it. */
  readonly observer: Observer;
  readonly isAlive: boolean;
  /** Whether new agents are no longer directed to the process. */
  readonly isHidden: boolean;
  /** Handle a call from an agent. Rejects with the error that the agent receives. */
  report(request: ReportHeartbeatRequest): Promise<UnaryAnswer>;
}

/** A stream between an agent and a process. */
export interface WorldStream {
  readonly process: WorldProcess;
}

/** An agent, as the fault plan uses it. */
export interface WorldAgent {
  readonly index: number;
  /** Whether the agent runs and is not stopped. */
  readonly isUp: boolean;
  /** Start at a random time within `withinMs`. */
  start(withinMs: number): void;
  /** Die without notifying any replica. */
  crash(): void;
  goodbye(): void;
  /** Pause: nothing is sent or read. */
  stop(): void;
  resume(): void;
  /** Move to another replica. */
  move(): void;
  /** Handle timeouts and retries. Must be called every second. */
  look(): void;
}

/** An agent with a stream, as the network uses it. */
export interface StreamAgent {
  readonly index: number;
  onWelcome(stream: WorldStream): void;
  onAck(stream: WorldStream): void;
  onMove(stream: WorldStream): void;
  /** Called with a frame about work when WorkLane delivers it. */
  onWork(stream: WorldStream, frame: WorkFrameOfServer): void;
  /** Whether the agent can take a frame about work from this stream now, later, or never. */
  readiness(stream: WorldStream): "ready" | "later" | "gone";
  /** Called when the replica has ended the stream. The agent can reconnect after this time. */
  onEnd(stream: WorldStream, retryAfterMs: number): void;
}

/** The world of agents and replicas. */
export interface World {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedStore;
  readonly invariants: Invariants;
  /** The work on the nodes; null when nodes run no work. */
  readonly work: SimulatedWork | null;
  readonly agents: readonly WorldAgent[];
  /** Number of slots; each can run one replica at a time. */
  readonly slots: number;
  /** Numbers in [0, 1). */
  random(): number;
  /** The replica that accepts connections in a slot. */
  processAt(slot: number): WorldProcess | null;
  /** The replica with this instance, if its process is alive. */
  processNamed(instance: string): WorldProcess | null;
  isStopped(process: Reached): boolean;
  /** Deliver to a process: immediately if it runs, later if it is stopped, never if it is dead. */
  deliver(process: Reached, run: () => void): void;
  /** Call the store for a process. Rejects like a broken connection: the call may have been executed. */
  callRecord<T>(process: Reached, carryOut: () => T): Promise<T>;
}
