export { simulateBrake } from "./brake/brake-simulation.ts";
export { type SimulationVerdict, simulate } from "./simulation.ts";
export {
  ALL_FAULTS,
  type BrokenRule,
  type FaultKind,
  OWN_FAULTS,
  type SimulationOptions,
} from "./simulation-options.ts";
