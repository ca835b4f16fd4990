export { type ConsoleApp, type ConsoleProcess, createApp } from "./app.ts";
export { CONSOLE_KEYS, type ConsoleConfig, checkConsoleConfig } from "./config.ts";
export { originCheck } from "./origin/origin-check.ts";
export { type PageFiles, readPageFiles } from "./pages/page-files.ts";
export type { UpstreamOptions } from "./upstream/upstream.ts";
