import type { Invariants } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedAgent } from "./simulated-agent.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedRecord } from "./simulated-record.ts";
import type { SimulatedReplica } from "./simulated-replica.ts";
import type { SimulatedStream } from "./simulated-stream.ts";
import type { BrokenRule } from "./simulation-options.ts";

/** What agents and replicas live in. */
export interface World {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly invariants: Invariants;
  readonly broken: BrokenRule | undefined;
  readonly agents: readonly SimulatedAgent[];
  /** Places in which one replica at a time can run. */
  readonly slots: number;
  /** Numbers in [0, 1). */
  random(): number;
  /** The replica that takes connections there. */
  replicaAt(slot: number): SimulatedReplica | null;
  /** The replica of that name, if its process lives. */
  replicaNamed(instance: string): SimulatedReplica | null;
  isStopped(replica: SimulatedReplica): boolean;
  createStream(agent: SimulatedAgent, replica: SimulatedReplica): SimulatedStream;
  /** Let something reach a replica: at once, when it goes on if it is stopped, never if it is dead. */
  deliver(replica: SimulatedReplica, run: () => void): void;
  /** Let a replica call the record: null stands for an error, which says nothing about what the record did. */
  callRecord<T>(replica: SimulatedReplica, carryOut: () => T, done: (result: T | null) => void): void;
}
