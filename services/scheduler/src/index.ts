export { createApp } from "./app.ts";
export type { LeaderStep } from "./leader/leader-options.ts";
