import type { Executions, ReportAck, SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { AgentWorkFrame, WorkStore } from "@rollcall/health/parts";
import type { AppendedEvent, Invariants } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedStore } from "./simulated-store.ts";

/** A receiver of deliveries. Deliveries wait while it is stopped. */
export interface Reached {
  /** The replica's slot, by which the network decides whether the receiver can reach the store. */
  readonly slot: number;
  readonly isAlive: boolean;
}

/** The part of the world that the simulated work uses. */
export interface WorkWorld {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedStore;
  readonly invariants: Invariants;
  /** Number of agents; those with unary calls run no work. */
  readonly agentCount: number;
  /** Number of replica slots; the slots of other processes come after them. */
  readonly slots: number;
  random(): number;
  runsWork(agent: number): boolean;
  isStopped(process: Reached): boolean;
  /** Pause a process for a while; deliveries to it wait. */
  stop(process: Reached, ms: number): void;
  /** Deliver to a process: immediately if it runs, later if it is stopped, never if it is dead. */
  deliver(process: Reached, run: () => void): void;
  callRecord<T>(process: Reached, carryOut: () => T): Promise<T>;
  /** Kill all replicas and start them again later, as after a restore of the store. */
  restartAllReplicas(downMs: number): void;
  /** Notify the replicas, with a delay, that the desired work has changed. The notification can be lost. */
  notifyReplicas(): void;
}

/** A frame about work that an agent receives. */
export type WorkFrameOfServer =
  | { readonly case: "executions"; readonly value: Executions }
  | { readonly case: "spec"; readonly value: SpecFrame }
  | { readonly case: "reportAck"; readonly value: ReportAck };

/**
 * The part of an agent that runs work. Called only while the agent runs and is not stopped, except for
 * `crashed`.
 */
export interface SimulatedWorkAgent {
  /** The digest of the session's last report, which a Beat carries. */
  readonly toldDigest: bigint;
  /** Whether an execution on the agent's machine has not ended. */
  readonly isRunning: boolean;
  /** Called when a stream was welcomed; `send` sends frames to the replica. */
  opened(send: (frame: AgentWorkFrame) => void): void;
  receive(frame: WorkFrameOfServer): void;
  /** Called when the control plane has acknowledged a heartbeat. */
  seen(): void;
  /** Called when the stream has ended. */
  closed(): void;
  /** Called when the agent has ended. Executions on its machine keep running. */
  crashed(): void;
}

/**
 * The work on the nodes of a simulation: everything that schedules and runs it. The health service only
 * transports it.
 */
export interface SimulatedWork {
  /** Create the store of work for one replica, which makes its calls through `call`. */
  recordOf(call: <T>(carryOut: () => T) => Promise<T>): WorkStore;
  /**
   * Create the part of an agent that runs work; `isAwake` returns whether the agent runs and is not stopped.
   */
  agentOf(index: number, isAwake: () => boolean): SimulatedWorkAgent;
  /** Like agentOf(), for a second agent on an empty machine, which is switched off when the agent crashes. */
  cloneOf(index: number, isAwake: () => boolean): SimulatedWorkAgent;
  /** Called when a node's connection or health was written. */
  onEvent(event: AppendedEvent): void;
  /** Start; called after everything was created. */
  begin(): void;
  /** Called once in each step. */
  step(): void;
  /** Called once a second. */
  look(): void;
  /** Cause one fault of the work. */
  disturb(): void;
  /** Stop causing faults and changing the desired work. */
  calm(): void;
  /** Check the invariants that hold after all faults have ended and their effects are over. */
  settled(): void;
  /** The revision of the last event that each process of the work has read. */
  readRevisions(): readonly number[];
  /** Describe the result for people. */
  describe(): string;
}
