import type { Shell } from "@rollcall/cli";
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
