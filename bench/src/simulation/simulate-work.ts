import { type SimulationOptions, type SimulationVerdict, simulate, WORK_FAULTS } from "@rollcall/health/simulation";
import { SimulatedWorkWorld } from "./work-world.ts";

/** What is simulated: every fault, unless it is told otherwise. */
export type WorkSimulationOptions = Omit<SimulationOptions, "faults"> & Partial<Pick<SimulationOptions, "faults">>;

/** Run the simulation of health with work on its nodes. */
export function simulateWork(options: WorkSimulationOptions): Promise<SimulationVerdict> {
  return simulate({ faults: WORK_FAULTS, ...options }, (world) => new SimulatedWorkWorld(world));
}
