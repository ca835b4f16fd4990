import type { Shell } from "@rollcall/cli";
import { type Config, listConfig } from "@rollcall/config";
import { createLogger, type Logger } from "@rollcall/process";
import type { ProcessConfig } from "./config/process-keys.ts";

/**
 * Open the log of a process: coloured readable lines on a terminal and JSON elsewhere, unless configured otherwise. It
 * is written to standard output, or to `destination`.
 */
export function openLog(
  config: Pick<ProcessConfig, "Log.Level" | "Log.Format">,
  { out, env }: Pick<Shell, "out" | "env">,
  name: string,
  destination?: Pick<Shell["out"], "write">,
): Logger {
  const format = config["Log.Format"];
  const pretty = format === "pretty" || (format === "auto" && out.isTerminal);
  return createLogger({
    level: config["Log.Level"],
    pretty,
    colours: out.isTerminal && !env.NO_COLOR && env.TERM !== "dumb",
    fields: { process: name },
    ...(destination === undefined ? {} : { destination }),
  });
}

/**
 * Log the settings that differ from the defaults, with their sources, because this is the first question about any
 * process. Secrets are not shown.
 */
export function logConfiguration<T>(config: Config<T>, log: Logger): void {
  for (const { where, message } of config.warnings) {
    log.warn({ where, problem: message }, "unusual setting");
  }
  for (const { path, value, source } of listConfig(config)) {
    if (source !== "default") log.info({ key: path, value, source }, "setting");
  }
}
