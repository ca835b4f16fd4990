import { createLogger, type Logger } from "@rollcall/process";

/** A line of the log, as written. */
export type LogLine = Readonly<Record<string, unknown>>;

/** A real logger whose lines can be looked at. */
export function captureLog(): { readonly log: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  return { log: createLogger({ level: "debug", destination }), lines };
}
