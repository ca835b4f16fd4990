export { createApp, type SchedulerApp } from "./app.ts";
export type { LeaderStep, LeaderTiming } from "./leader/leader-options.ts";
export type { SchedulerProcess } from "./scheduler-process.ts";
