import { AsyncLocalStorage } from "node:async_hooks";

/** The ids of a span for log lines. */
export interface SpanIds {
  readonly trace_id: string;
  readonly span_id: string;
}

export type SpanValue = string | number | boolean;

/** A traced piece of work. */
export interface Span {
  readonly ids: SpanIds;
  /**
   * The header for calls to other processes, which makes this span the parent of
   * their spans.
   */
  readonly traceparent: string;
  set(name: string, value: SpanValue): void;
  /** Record a part of this work that has just ended. */
  note(part: SpanPart): void;
  /** End the span; `failure` names the failure in one word. */
  end(failure?: string): void;
}

/** A part of a span, recorded when it has ended. */
export interface SpanPart {
  readonly name: string;
  readonly durationMs: number;
  readonly values: Readonly<Record<string, SpanValue>>;
  readonly failure?: string;
}

/** The data of a span at its start. */
export interface SpanStart {
  readonly name: string;
  /** The caller's traceparent header; null when there is none. */
  readonly traceparent: string | null;
  readonly values: Readonly<Record<string, SpanValue>>;
}

/** Creates a process's spans and exports them. */
export interface Tracer {
  start(span: SpanStart): Span;
  /** Send pending spans. Never rejects. */
  close(): Promise<void>;
}

const current = new AsyncLocalStorage<Span>();

/** The span of the current async context; undefined when there is none. */
export function activeSpan(): Span | undefined {
  return current.getStore();
}

/**
 * Run work in a span, including everything asynchronous that follows from the
 * work.
 */
export function inSpan<T>(span: Span, work: () => T): T {
  return current.run(span, work);
}
