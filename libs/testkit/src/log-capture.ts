import { createLogger, type Logger } from "@rollcall/process";

/** A line of the log, as written. */
export type LogLine = Readonly<Record<string, unknown>>;

/** Create a real logger whose lines the test can inspect. */
export function captureLog(): { readonly log: Logger; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  return { log: createLogger({ level: "debug", destination }), lines };
}
