// What a keeper decides about an execution, without processes and disk: simulations run it.
export type { ExecutionRecord } from "../journal/execution-record.ts";
export { toIdentity, toKept } from "../socket/to-kept.ts";
export { NO_RULES, readSpec } from "../spec/read-spec.ts";
export { beginExecution, dueAtMs, type NeverStarted, neverStarted, stepExecution } from "./execution-machine.ts";
export type { ExecutionEffect, ExecutionEvent, Exit } from "./execution-state.ts";
