import {
  type Context,
  defaultTextMapGetter,
  type Span as OtelSpan,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { type ExportResult, ExportResultCode, W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace-base";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logging.ts";
import type { Span, SpanPart, SpanStart, Tracer } from "./span.ts";

/** Where to send traces, and how to identify this process in them. */
export interface OtlpTracerOptions {
  /** Base URL of a collector that accepts OTLP over HTTP; /v1/traces is appended if it is missing. */
  readonly endpoint: string;
  /**
   * The share of this process's own traces to sample, from 0 to 1. For a trace that another process started,
   * that process decides.
   */
  readonly ratio: number;
  /** Resource attributes of every span, such as service.name. */
  readonly resource: Readonly<Record<string, string>>;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Maximum number of waiting spans. More are dropped, so that an unavailable collector does not use up memory.
 */
const MOST_WAITING = 2_048;
const SEND_EVERY_MS = 2_000;
const SEND_LIMIT_MS = 5_000;
const CLOSE_LIMIT_MS = 2_000;
const SAY_EVERY_MS = 60_000;

/** Create a process's tracer. It sends spans to a collector as OTLP over HTTP. */
export function createOtlpTracer(options: OtlpTracerOptions): Tracer {
  const { endpoint, ratio, resource, clock } = options;
  const base = endpoint.replace(/\/+$/, "");
  const url = base.endsWith("/v1/traces") ? base : `${base}/v1/traces`;
  const exporter = tellingFailures(new OTLPTraceExporter({ url, timeoutMillis: SEND_LIMIT_MS }), url, options);
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ ...resource }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor(exporter, {
        maxQueueSize: MOST_WAITING,
        scheduledDelayMillis: SEND_EVERY_MS,
        exportTimeoutMillis: SEND_LIMIT_MS,
      }),
    ],
  });
  const tracer = provider.getTracer("rollcall");
  const propagator = new W3CTraceContextPropagator();
  return {
    start: ({ name, traceparent, values }: SpanStart) => {
      const carrier = traceparent === null ? {} : { traceparent };
      const parent = propagator.extract(ROOT_CONTEXT, carrier, defaultTextMapGetter);
      const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes: { ...values } }, parent);
      return new TracedSpan(tracer, span, parent, clock);
    },
    close: async () => {
      const done = new AbortController();
      const late = clock.sleep(CLOSE_LIMIT_MS, done.signal).catch(() => {});
      // Wait only for a limited time: the process does not wait for a collector when it exits. Unsent spans are
      // lost.
      await Promise.race([provider.shutdown().catch(() => {}), late]);
      done.abort();
    },
  };
}

class TracedSpan implements Span {
  readonly ids: Span["ids"];
  readonly traceparent: string;
  readonly #tracer: OtelTracer;
  readonly #span: OtelSpan;
  readonly #context: Context;
  readonly #clock: Clock;

  constructor(tracer: OtelTracer, span: OtelSpan, parent: Context, clock: Clock) {
    this.#tracer = tracer;
    this.#span = span;
    this.#context = trace.setSpan(parent, span);
    this.#clock = clock;
    const { traceId, spanId, traceFlags } = span.spanContext();
    this.ids = { trace_id: traceId, span_id: spanId };
    this.traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  }

  set(name: string, value: string | number | boolean): void {
    this.#span.setAttribute(name, value);
  }

  note({ name, durationMs, values, failure }: SpanPart): void {
    const endTime = this.#clock.wallMs();
    const startTime = endTime - durationMs;
    const attributes = { ...values };
    const part = this.#tracer.startSpan(name, { kind: SpanKind.CLIENT, startTime, attributes }, this.#context);
    if (failure !== undefined) part.setStatus({ code: SpanStatusCode.ERROR, message: failure });
    part.end(endTime);
  }

  end(failure?: string): void {
    if (failure !== undefined) this.#span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
    this.#span.end();
  }
}

/** Log that the collector is unavailable, at most once a minute. */
function tellingFailures(exporter: SpanExporter, url: string, { log, clock }: OtlpTracerOptions): SpanExporter {
  let saidAtMs = Number.NEGATIVE_INFINITY;
  const note = (spans: readonly ReadableSpan[], { code, error }: ExportResult) => {
    if (code === ExportResultCode.SUCCESS || clock.nowMs() - saidAtMs < SAY_EVERY_MS) return;
    saidAtMs = clock.nowMs();
    log.warn({ endpoint: url, spans: spans.length, err: error }, "traces cannot be sent");
  };
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        note(spans, result);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => {
      await exporter.forceFlush?.();
    },
  };
}
