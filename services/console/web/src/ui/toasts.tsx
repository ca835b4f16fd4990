import { type ReactNode, useState } from "react";
import { toCallError } from "../live/call-error.ts";
import { Observable, useObservable } from "../live/observable.ts";
import { Button } from "./button.tsx";
import { Shape } from "./state-mark.tsx";

/** A message at the edge of the page. */
interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: ReactNode;
}

const shown = new Observable<readonly Toast[]>([]);
const MOST = 4;
const LASTS_MS = 6000;
let lastId = 0;

/** Show a message for some seconds; errors stay until they are closed. */
export function say(tone: Toast["tone"], text: ReactNode): void {
  lastId += 1;
  const id = lastId;
  shown.set([...shown.value, { id, tone, text }].slice(-MOST));
  if (tone === "good") window.setTimeout(() => close(id), LASTS_MS);
}

/** Show the error of a call. */
export function sayFailure(what: string, cause: unknown): void {
  const { message, reason } = toCallError(cause);
  say(
    "bad",
    <>
      <strong>{what}</strong>
      <div>{message}</div>
      <code className="soft">{reason}</code>
    </>,
  );
}

/**
 * Runs the action of a form or button. `busy` is true while it runs. Errors are shown, so `act` never
 * rejects.
 */
export function useAct() {
  const [busy, setBusy] = useState(false);
  const act = async (what: string, run: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    try {
      await run();
    } catch (cause) {
      sayFailure(what, cause);
    } finally {
      setBusy(false);
    }
  };
  return { busy, act };
}

/** The current messages, with `children` below. */
export function Toasts({ children }: { readonly children?: ReactNode }) {
  const toasts = useObservable(shown);
  return (
    <div className="toasts" aria-live="polite">
      {toasts.map(({ id, tone, text }) => (
        <div key={id} className={`toast appears ${tone}`}>
          <span aria-hidden="true">
            <Shape tone={tone} />
          </span>
          <div className="grow breaks">{text}</div>
          <Button small look="plain" aria-label="Close" onClick={() => close(id)}>
            ✕
          </Button>
        </div>
      ))}
      {children}
    </div>
  );
}

function close(id: number): void {
  shown.set(shown.value.filter((toast) => toast.id !== id));
}
