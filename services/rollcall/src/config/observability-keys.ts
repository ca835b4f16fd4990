import { decimal, defineKeys, oneOf, optional, url } from "@rollcall/config";

/**
 * The lowest level that is logged. This file repeats the names, so that the configuration does not load the runtime.
 */
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
export type LogFormat = "auto" | "pretty" | "json";

/** The keys for traces and the log. */
export const OBSERVABILITY_KEYS = defineKeys({
  "Tracing.Endpoint": {
    schema: optional(url("http://127.0.0.1:4318", { schemes: ["http", "https"], paths: true })),
    default: undefined,
    flag: "tracing-endpoint",
    env: ["OTEL_EXPORTER_OTLP_ENDPOINT"],
    doc:
      "URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318; /v1/traces is " +
      "appended if missing. When set, every unary call becomes a span that contains its Postgres queries. The span " +
      "belongs to the trace in the caller's traceparent header, and log lines of the call carry trace_id and " +
      "span_id. Streams are not traced. An unreachable collector does no harm: up to 2,048 spans wait, and further " +
      "ones are dropped.",
  },
  "Tracing.SampleRatio": {
    schema: decimal({ min: 0, max: 1 }),
    default: 1,
    doc:
      "Fraction of the traces started here to keep. For calls with a traceparent header, the caller decides. " +
      "See Tracing.Endpoint.",
  },
  "Log.Level": {
    schema: oneOf<LogLevel>(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    default: "info" as const,
    flag: "log-level",
    aliases: ["Logging.Level"],
    doc: "Lowest level that is logged.",
  },
  "Log.Format": {
    schema: oneOf<LogFormat>(["auto", "pretty", "json"]),
    default: "auto" as const,
    flag: "log-format",
    doc:
      "Log format: pretty for readable lines, json for one JSON object per line, auto for pretty on a terminal and " +
      "JSON elsewhere.",
  },
});
