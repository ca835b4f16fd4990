import process from "node:process";
import { pino } from "pino";
import { type Clock, systemClock } from "./clock.ts";
import { formatLogLine } from "./log-format.ts";
import { RepeatedLines } from "./repeated-lines.ts";
import { activeSpan } from "./tracing/span.ts";

/** The least that is written. */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";

/** Write one line: what varies goes into the fields, the message is constant, lower case, without a final period. */
export type LogFunction = (fields: object, message: string) => void;

/** The log of a process or of one of its parts. An `err` field is written with its stack and its causes. */
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
  /** One readable line instead of JSON, for terminals. Default false. */
  readonly pretty?: boolean;
  /** Where whole lines go, each with its line feed; standard output when absent. */
  readonly destination?: { write(line: string): unknown };
  /** Fields of every line, for example { service: "registry" }. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** By which lines of one cause are counted. Default the system's. */
  readonly clock?: Pick<Clock, "nowMs">;
}

/** Levels as pino numbers them. */
const WARN = 40;
const FATAL = 60;
/** What may wait for a reader of standard output that does not keep up. Beyond it lines are dropped. */
const MOST_WAITING_BYTES = 16_777_216;

/**
 * Create the log of a process. Warnings and errors of one cause are ten a minute at most; how many more there were is
 * written with the next line after that minute.
 */
export function createLogger(options: LoggerOptions): Logger {
  const target = options.destination ?? standardOutput();
  const destination = options.pretty ? { write: (line: string) => target.write(formatLogLine(line)) } : target;
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
            for (const leftOut of repeated.takeDue()) write.call(this, leftOut, "lines of one cause left out");
          }
          const [fields, message] = words as unknown[];
          const isCounted = level >= WARN && level < FATAL;
          if (!isCounted || repeated.note(String(message), fields)) write.apply(this, words);
        },
      },
      // Lines that are written within a call lead to its trace, and back.
      mixin: () => activeSpan()?.ids ?? {},
      serializers: { err: pino.stdSerializers.errWithCause },
      redact: {
        paths: ["token", "authorization", "password", "*.token", "*.authorization", "*.password"],
      },
    },
    { write: (line: string) => writeIfPossible(destination, line) },
  );
}

/** A full or read-only disk must not end a process by way of its log. The line is lost; there is nowhere to say so. */
function writeIfPossible(destination: { write(line: string): unknown }, line: string): void {
  try {
    destination.write(line);
  } catch {
    // What keeps the log from being written is found by other means, see FaultWatch.
  }
}

/**
 * Standard output, written asynchronously: a slow terminal or pipe holds up nothing. What waits is written at the exit;
 * the 16 KiB on which a write was begun may be lost then, if the reader is slow.
 */
function standardOutput() {
  const output = pino.destination({ fd: 1, sync: false, maxLength: MOST_WAITING_BYTES });
  // Without a reader there is no one to tell, and the process goes on with its work.
  output.on("error", () => {});
  process.on("exit", () => {
    try {
      output.flushSync();
    } catch {
      // Standard output is gone, or was never opened.
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
