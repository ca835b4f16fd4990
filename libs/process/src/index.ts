export { type Backoff, backoffMs, fullJitter, halfJitter } from "./backoff.ts";
export { Batcher, takeFrom } from "./batcher.ts";
export { type Clock, systemClock } from "./clock.ts";
export { makeDirectory } from "./directories/make-directory.ts";
export { errorCode } from "./error-code.ts";
export { type Fault, FaultWatch } from "./find-faults.ts";
export { type ProcessLike, type Running, type RunOptions, runProcess, StartError } from "./lifecycle.ts";
export { createLogger, type Logger, type LogLevel, silentLogger } from "./logging.ts";
export {
  counter,
  createMetrics,
  gauge,
  histogram,
  type LabelledCounter,
  type MetricsRegistry,
  onScrape,
  renderMetrics,
} from "./metrics.ts";
export { openFilesLimit, watchOpenFiles } from "./open-files.ts";
export { Parts, startParts } from "./parts.ts";
export { processStart } from "./process-start.ts";
export { createFile, type DurableFiles, replaceFile, syncDirectory } from "./replace-file.ts";
export { surviveStraySignals } from "./stray-signals.ts";
export { isSystemError, systemErrorText, systemErrorWords } from "./system-error.ts";
export {
  Loop,
  type LoopOptions,
  type RetryPauses,
  type RunningTasks,
  startTasks,
  superviseTasks,
  type Task,
} from "./tasks.ts";
export { activeSpan, inSpan, type Tracer } from "./tracing/span.ts";
export { WakeUp } from "./wake-up.ts";
