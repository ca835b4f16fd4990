import type { Executions, ReportAck, SpecFrame } from "@rollcall/api/rollcall/health/v1/health_pb";
import type { AgentWorkFrame } from "../session/session-host.ts";
import type { WorkRecord } from "../work/work-record.ts";
import type { AppendedEvent, Invariants } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedRecord } from "./simulated-record.ts";

/** What reaches a process, or waits while it is stopped. */
export interface Reached {
  /** Where the record may be out of reach for it. */
  readonly slot: number;
  readonly isAlive: boolean;
}

/** What the work of a simulation has of the world around it. */
export interface WorkWorld {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly invariants: Invariants;
  /** How many agents there are; those that call instead of holding a stream run no work. */
  readonly agentCount: number;
  /** Places of replicas; those of other processes come after them. */
  readonly slots: number;
  random(): number;
  runsWork(agent: number): boolean;
  isStopped(process: Reached): boolean;
  /** Let a process stand still for a while; what reaches it waits. */
  stop(process: Reached, ms: number): void;
  /** Let something reach a process: at once, when it goes on if it is stopped, never if it is dead. */
  deliver(process: Reached, run: () => void): void;
  callRecord<T>(process: Reached, carryOut: () => T): Promise<T>;
  /** Kill all replicas, and start them again some time later: so a record is restored. */
  restartAllReplicas(downMs: number): void;
  /** What nodes should run has changed: replicas are told, later and not for certain. */
  notifyReplicas(): void;
}

/** A frame about work that an agent receives. */
export type WorkFrameOfServer =
  | { readonly case: "executions"; readonly value: Executions }
  | { readonly case: "spec"; readonly value: SpecFrame }
  | { readonly case: "reportAck"; readonly value: ReportAck };

/** An agent's part in work. It is called while its agent runs and is not stopped, except for `crashed`. */
export interface SimulatedWorkAgent {
  /** What a Beat says: the digest of the last report of the session. */
  readonly toldDigest: bigint;
  /** Whether an execution of its machine has not ended. */
  readonly isRunning: boolean;
  /** A stream was welcomed; frames for the replica go through `send`. */
  opened(send: (frame: AgentWorkFrame) => void): void;
  receive(frame: WorkFrameOfServer): void;
  /** The control plane was heard. */
  seen(): void;
  /** There is no stream any more. */
  closed(): void;
  /** The agent has ended; what runs on its machine goes on. */
  crashed(): void;
}

/** Work on the nodes of a simulation: what schedules and runs it, beside the health service that carries it. */
export interface SimulatedWork {
  /** The record of work as one replica calls it. */
  recordOf(call: <T>(carryOut: () => T) => Promise<T>): WorkRecord;
  /** The agent's part; `isAwake` tells whether its process runs and is not stopped. */
  agentOf(index: number, isAwake: () => boolean): SimulatedWorkAgent;
  /** The same of a second agent on an empty machine, which is switched off when the agent crashes. */
  cloneOf(index: number, isAwake: () => boolean): SimulatedWorkAgent;
  /** A node's connection or health was written. */
  onEvent(event: AppendedEvent): void;
  /** Begin, once everything is made. */
  begin(): void;
  /** Once a step. */
  step(): void;
  /** Once a second. */
  look(): void;
  /** Cause one more fault of its own. */
  disturb(): void;
  /** No more faults, and nothing new is wanted. */
  calm(): void;
  /** Check what must be so once all has healed. */
  settled(): void;
  /** How far its processes have read the log. */
  readRevisions(): readonly number[];
  /** For people. */
  describe(): string;
}
