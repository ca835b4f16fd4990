import type { ReactNode } from "react";
import { toCallError } from "../live/call-error.ts";
import { Button } from "./button.tsx";
import { Shape } from "./state-mark.tsx";
import { ExactTime } from "./time.tsx";

/** An empty state: why there is nothing to show, and what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A placeholder while data loads. */
export function Loading({ lines = 4 }: { readonly lines?: number }) {
  return (
    <div className="loading" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all the same.
        <i key={at} className="busy-dot" style={{ width: `${92 - at * 14}%` }} />
      ))}
    </div>
  );
}

/** An error while loading, with what to do. */
export function Failure({ cause, onRetry }: { readonly cause: unknown; readonly onRetry?: () => void }) {
  const { kind, reason, message } = toCallError(cause);
  if (kind === "forbidden") {
    return (
      <Empty title="Your role does not allow this">
        <p>{message}</p>
        <p className="soft small">Sign in with a token whose role is high enough, or ask an admin.</p>
      </Empty>
    );
  }
  return (
    <Empty title={kind === "missing" ? "Not found" : "Loading failed"}>
      <p className="breaks">{message}</p>
      <code className="soft">{reason}</code>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </Empty>
  );
}

/** A highlighted line. */
export function Notice({
  tone,
  children,
}: {
  readonly tone: "bad" | "warn" | "good" | "busy";
  readonly children: ReactNode;
}) {
  return (
    <div className={`notice ${tone}`} role="status">
      <span aria-hidden="true">
        <Shape tone={tone} />
      </span>
      <div className="grow breaks">{children}</div>
    </div>
  );
}

/** Shows that a list is truncated and the page does not load the rest. */
export function CutShort({ next, command }: { readonly next: string; readonly command: string }) {
  if (next === "") return null;
  return (
    <p className="soft small cut-short">
      This list is incomplete. <code>{command}</code> shows all of it.
    </p>
  );
}

/** Shows that refetching failed and the data is old. */
function OldData({ from, cause }: { readonly from: Reading<unknown>; readonly cause: unknown }) {
  const { message, reason } = toCallError(cause);
  return (
    <Notice tone="bad">
      <strong>Data may be stale</strong>, loaded at <ExactTime ms={from.dataUpdatedAt} />: {message}{" "}
      <code>{reason}</code>{" "}
      <Button small onClick={() => from.refetch()}>
        Try again
      </Button>
    </Notice>
  );
}

interface Reading<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  /** When the data was loaded. */
  readonly dataUpdatedAt: number;
  readonly refetch: () => unknown;
}

/**
 * Renders loaded data: a placeholder before it arrives, and an error, together with older data if there
 * is any.
 */
export function Read<T>({
  from,
  lines,
  children,
}: {
  readonly from: Reading<T>;
  readonly lines?: number;
  readonly children: (data: T) => ReactNode;
}) {
  if (from.data !== undefined) {
    return (
      <>
        {from.error !== null && <OldData from={from} cause={from.error} />}
        {children(from.data)}
      </>
    );
  }
  if (from.error !== null) return <Failure cause={from.error} onRetry={() => from.refetch()} />;
  return lines === undefined ? <Loading /> : <Loading lines={lines} />;
}
