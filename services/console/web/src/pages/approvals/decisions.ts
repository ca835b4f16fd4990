import { Observable } from "../../live/observable.ts";
import * as undo from "../../state/undo-queue.ts";
import { say, sayFailure } from "../../ui/toasts.tsx";

/** A decision about a machine that waits. */
export interface Decision {
  readonly verb: "approve" | "reject";
  readonly ids: readonly string[];
  readonly reason: string;
}

/** Decisions that can still be taken back. */
export const waiting = new Observable<undo.UndoQueue<Decision>>([]);

let lastId = 0;
let timer: number | undefined;

/** Decide: it is sent after some seconds, unless it is taken back. */
export function decide(what: Decision): void {
  lastId += 1;
  advance(undo.decide(waiting.value, { id: lastId, what }, Date.now()));
}

/** Take a decision back; without an id the last one. */
export function takeBack(id = undo.latest(waiting.value)?.id): void {
  if (id !== undefined) waiting.set(undo.takeBack(waiting.value, id));
}

/** Send everything now. */
export function sendNow(): void {
  advance(undo.sendAll(waiting.value));
}

function advance({ queue, send }: undo.Step<Decision>): void {
  waiting.set(queue);
  for (const { what } of send) {
    deliver(what).catch(() => {
      // deliver() tells the reader itself.
    });
  }
  window.clearTimeout(timer);
  const next = undo.msUntilDue(queue, Date.now());
  if (next !== null) timer = window.setTimeout(() => advance(undo.sendDue(waiting.value, Date.now())), next);
}

async function deliver({ verb, ids, reason }: Decision): Promise<void> {
  const what = verb === "approve" ? "Approve" : "Reject";
  try {
    // Loaded with the first decision: every page has this file, and few have anything to decide.
    const { runVerb } = await import("../../actions/verbs.ts");
    const outcomes = await runVerb(verb, ids, { reason, validateOnly: false });
    const refused = outcomes.filter(({ refusal }) => refusal !== "");
    if (refused.length === 0)
      return say("good", `${verb === "approve" ? "Approved" : "Rejected"} ${ids.join(", ").slice(0, 200)}`);
    say(
      "bad",
      `${what}: ${refused
        .map(({ refusal }) => refusal)
        .join("; ")
        .slice(0, 400)}`,
    );
  } catch (cause) {
    sayFailure(what, cause);
  }
}

// A page that is closed would lose what waits: the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (waiting.value.length > 0) event.preventDefault();
});
