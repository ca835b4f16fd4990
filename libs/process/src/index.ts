export { type Backoff, backoffMs, fullJitter, halfJitter } from "./backoff.ts";
export { Batcher, type BatcherOptions } from "./batcher.ts";
export { type Clock, systemClock } from "./clock.ts";
export { errorCode } from "./error-code.ts";
export { type ProcessLike, type Running, type RunOptions, runProcess, StartError } from "./lifecycle.ts";
export {
  createLogger,
  type LogFunction,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  silentLogger,
} from "./logging.ts";
export { makeDirectory } from "./make-directory.ts";
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
export {
  Loop,
  type LoopOptions,
  type RetryPauses,
  type RunningTasks,
  type SuperviseOptions,
  type Supervision,
  startTasks,
  superviseTasks,
  type Task,
  type TaskStatus,
} from "./tasks.ts";
export {
  activeSpan,
  inSpan,
  type Span,
  type SpanIds,
  type SpanPart,
  type SpanStart,
  type SpanValue,
  type Tracer,
} from "./tracing/span.ts";
export { type RestTime, WakeUp } from "./wake-up.ts";
