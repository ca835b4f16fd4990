export type { AgentWorkFrame } from "@rollcall/health/parts";
export { simulateBrake } from "./brake/brake-simulation.ts";
export { brokenPromise, SCENARIOS, type Scenario } from "./faults/scenarios.ts";
export { createVirtualClock, type Planned } from "./schedule.ts";
export type { Reached, SimulatedWork, SimulatedWorkAgent, WorkFrameOfServer, WorkWorld } from "./simulated-work.ts";
export { type SimulationResult, simulate } from "./simulation.ts";
export {
  ALL_FAULTS,
  type BrokenRule,
  CLONE_FAULTS,
  type FaultKind,
  nodeIdOf,
  OWN_FAULTS,
  type SimulationOptions,
  WORK_FAULTS,
} from "./simulation-options.ts";
