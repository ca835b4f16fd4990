// The keeper's decisions about an execution. They need no processes and no disk, so that simulations can use
// them.
export type { Execution } from "../journal/execution-entry.ts";
export { toIdentity, toKept } from "../socket/to-kept.ts";
export { NO_RULES, readSpec } from "../spec/read-spec.ts";
export type { ExecutionEffect, ExecutionEvent, Exit } from "../state/execution-state.ts";
export { beginExecution, dueAtMs, type NeverStarted, neverStarted, stepExecution } from "./execution-machine.ts";
