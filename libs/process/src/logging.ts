import process from "node:process";
import { pino } from "pino";
import { type Clock, systemClock } from "./clock.ts";
import { formatLogLine } from "./log-format.ts";
import { RepeatedLines } from "./repeated-lines.ts";
import { activeSpan } from "./tracing/span.ts";

/** The minimum level to write. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Write one line. Variable parts belong in the fields; the message is constant, lower case, without a final period. */
export type LogFunction = (fields: object, message: string) => void;

/** The log of a process or of one of its parts. An `err` field is written with its stack and causes. */
export interface Logger {
  readonly trace: LogFunction;
  readonly debug: LogFunction;
  readonly info: LogFunction;
  readonly warn: LogFunction;
  readonly error: LogFunction;
  readonly fatal: LogFunction;
  /** A logger that adds these fields to each line. */
  child(fields: Record<string, unknown>): Logger;
}

export interface LoggerOptions {
  readonly level: LogLevel;
  /** Whether to write readable lines for terminals instead of JSON. Default false. */
  readonly pretty?: boolean;
  /** Whether readable lines have ANSI colours. Default false. */
  readonly colours?: boolean;
  /** Where to write complete lines, each with its line feed; default standard output. */
  readonly destination?: { write(line: string): unknown };
  /** Fields of every line, for example { service: "registry" }. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The clock for limiting repeated lines. Default: the system's clock. */
  readonly clock?: Pick<Clock, "nowMs">;
}

/** Pino's numbers for the levels. */
const WARN = 40;
const FATAL = 60;
/**
 * Maximum size in bytes of output that a slow reader of standard output has not read yet. Beyond this size, lines are
 * dropped.
 */
const MOST_WAITING_BYTES = 16_777_216;

/**
 * Create the log of a process. Warnings and errors with the same cause are limited to ten a minute. The next line after
 * that minute includes the number of omitted lines.
 */
export function createLogger(options: LoggerOptions): Logger {
  const target = options.destination ?? standardOutput();
  const destination = options.pretty
    ? { write: (line: string) => target.write(formatLogLine(line, options.colours)) }
    : target;
  const repeated = new RepeatedLines(options.clock ?? systemClock);
  return pino(
    {
      level: options.level,
      base: { ...options.fields },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(words, write, level) {
          if (repeated.isDue) {
            for (const leftOut of repeated.takeDue()) write.call(this, leftOut, "repeated lines omitted");
          }
          const [fields, message] = words as unknown[];
          const isCounted = level >= WARN && level < FATAL;
          if (!isCounted || repeated.note(String(message), fields)) write.apply(this, words);
        },
      },
      // Add the trace id to lines that are written during a call, so that logs and traces can be linked.
      mixin: () => activeSpan()?.ids ?? {},
      serializers: { err: pino.stdSerializers.errWithCause },
      redact: {
        paths: ["token", "authorization", "password", "*.token", "*.authorization", "*.password"],
      },
    },
    { write: (line: string) => writeIfPossible(destination, line) },
  );
}

/**
 * Write a line. If that fails, the line is lost, because the failure cannot be reported anywhere. A full or read-only
 * disk must not end the process through its log.
 */
function writeIfPossible(destination: { write(line: string): unknown }, line: string): void {
  try {
    destination.write(line);
  } catch {
    // Ignore the error: FaultWatch detects why the log cannot be written.
  }
}

/**
 * Standard output, written asynchronously, so that a slow terminal or pipe blocks nothing. Pending lines are written at
 * exit. With a slow reader, the 16 KiB of the write in progress can be lost.
 */
function standardOutput() {
  const output = pino.destination({ fd: 1, sync: false, maxLength: MOST_WAITING_BYTES });
  // Ignore the error: the reader is gone, but the process continues to work.
  output.on("error", () => {});
  process.on("exit", () => {
    try {
      output.flushSync();
    } catch {
      // Ignore the error: standard output is closed or was never opened.
    }
  });
  return output;
}

const ignore: LogFunction = () => {};

/** A logger that writes nothing. */
export const silentLogger: Logger = {
  trace: ignore,
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  fatal: ignore,
  child: () => silentLogger,
};
