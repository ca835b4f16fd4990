import { AsyncLocalStorage } from "node:async_hooks";

/** What log lines carry of a span. */
export interface SpanIds {
  readonly trace_id: string;
  readonly span_id: string;
}

/** The value of an attribute. */
export type SpanValue = string | number | boolean;

/** A piece of work that is traced. */
export interface Span {
  readonly ids: SpanIds;
  /** The header by which a call to another process names this span as its parent. */
  readonly traceparent: string;
  set(name: string, value: SpanValue): void;
  /** Note a part of this work that has ended just now. */
  note(part: SpanPart): void;
  /** End it; `failure` says in a word why it failed. */
  end(failure?: string): void;
}

/** A part of a span, known when it is over. */
export interface SpanPart {
  readonly name: string;
  readonly durationMs: number;
  readonly values: Readonly<Record<string, SpanValue>>;
  readonly failure?: string;
}

/** What a span begins with. */
export interface SpanStart {
  readonly name: string;
  /** The caller's traceparent header, if it sent one. */
  readonly traceparent: string | null;
  readonly values: Readonly<Record<string, SpanValue>>;
}

/** What makes the spans of a process, and sends them away. */
export interface Tracer {
  start(span: SpanStart): Span;
  /** Send what has not been sent yet. Never rejects. */
  close(): Promise<void>;
}

const current = new AsyncLocalStorage<Span>();

/** The span in which the present code runs; undefined outside of any. */
export function activeSpan(): Span | undefined {
  return current.getStore();
}

/** Run work, and all that follows from it, in a span. */
export function inSpan<T>(span: Span, work: () => T): T {
  return current.run(span, work);
}
