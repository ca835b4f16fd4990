import { type SimulationOptions, type SimulationResult, simulate, WORK_FAULTS } from "../health/index.ts";
import { SimulatedWorkWorld } from "./work-world.ts";

/** Options of the simulation. By default, every fault occurs. */
export type WorkSimulationOptions = Omit<SimulationOptions, "faults"> & Partial<Pick<SimulationOptions, "faults">>;

/** Run the simulation of health with executions on its nodes. */
export function simulateWork(options: WorkSimulationOptions): Promise<SimulationResult> {
  return simulate({ faults: WORK_FAULTS, ...options }, (world) => new SimulatedWorkWorld(world));
}
