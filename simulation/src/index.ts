export * from "./health/index.ts";
export { simulateWork } from "./work/simulate-work.ts";
export { type MachineWorld, SimulatedKeeper } from "./work/simulated-keeper.ts";
export { WorkAgent } from "./work/simulated-work-agent.ts";
