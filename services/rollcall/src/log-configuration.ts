import { type Config, listConfig } from "@rollcall/config";
import type { Logger } from "@rollcall/process";

/** Write down what differs from the defaults and why: the first question about any process. Secrets are not shown. */
export function logConfiguration<T>(config: Config<T>, log: Logger): void {
  for (const { where, message } of config.warnings) {
    log.warn({ where, problem: message }, "odd setting");
  }
  for (const { path, value, source } of listConfig(config)) {
    if (source !== "default") log.info({ key: path, value, source }, "setting");
  }
}
