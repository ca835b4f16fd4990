export { buildInfo, cliVersion } from "./build-info.ts";
export {
  ADMIN_TOKEN_FILE,
  CLIENT_VARIABLES,
  findDataDirectory,
  RUN_FILE,
  type RunFile,
  readRunFile,
} from "./client/data-directory.ts";
export { Failure, UsageError, unreadableFile } from "./failure.ts";
export { optionHint } from "./habits/option-hints.ts";
export { showing, withProgress } from "./output/progress.ts";
export { columnsOf } from "./output/style.ts";
export { counted, wrap } from "./output/text.ts";
export { formatBytes } from "./output/units.ts";
export type { ConfigurationView, ForeignVerb, Parts } from "./parts.ts";
export { runCli } from "./run-cli.ts";
export type { Shell, Sink } from "./shell.ts";
