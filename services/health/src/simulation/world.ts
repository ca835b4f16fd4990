import type { Invariants } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedAgent } from "./simulated-agent.ts";
import type { SimulatedNetwork } from "./simulated-network.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { SimulatedRecord } from "./simulated-record.ts";

/** What agents and replicas live in. */
export interface World {
  readonly schedule: Schedule;
  readonly network: SimulatedNetwork;
  readonly record: SimulatedRecord;
  readonly invariants: Invariants;
  readonly agents: readonly SimulatedAgent[];
  /** Places in which one replica at a time can run. */
  readonly slots: number;
  /** Numbers in [0, 1). */
  random(): number;
  /** The replica that takes connections there. */
  processAt(slot: number): SimulatedProcess | null;
  /** The replica of that name, if its process lives. */
  processNamed(instance: string): SimulatedProcess | null;
  isStopped(process: SimulatedProcess): boolean;
  /** Let something reach a process: at once, when it goes on if it is stopped, never if it is dead. */
  deliver(process: SimulatedProcess, run: () => void): void;
  /** Let a process call the record. It rejects as a broken connection does, which says nothing about what was done. */
  callRecord<T>(process: SimulatedProcess, carryOut: () => T): Promise<T>;
}
