import type { Shell } from "@rollcall/cli";
import { type Config, listConfig } from "@rollcall/config";
import { createLogger, type Logger } from "@rollcall/process";
import type { ProcessConfig } from "./config/process-keys.ts";

/** The log of a process: readable lines on a terminal and JSON elsewhere, unless configured otherwise. */
export function openLog(
  config: Pick<ProcessConfig, "Log.Level" | "Log.Format">,
  { out }: Pick<Shell, "out">,
  name: string,
): Logger {
  const format = config["Log.Format"];
  const pretty = format === "pretty" || (format === "auto" && out.isTerminal);
  return createLogger({
    level: config["Log.Level"],
    pretty,
    fields: pretty ? {} : { process: name },
  });
}

/** Write down what differs from the defaults and why: the first question about any process. Secrets are not shown. */
export function logConfiguration<T>(config: Config<T>, log: Logger): void {
  for (const { where, message } of config.warnings) {
    log.warn({ where, problem: message }, "odd setting");
  }
  for (const { path, value, source } of listConfig(config)) {
    if (source !== "default") log.info({ key: path, value, source }, "setting");
  }
}
