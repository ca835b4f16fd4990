import { toCallError } from "../../live/call-error.ts";
import { fleet } from "../../live/fleet.ts";
import { Observable } from "../../live/observable.ts";
import * as undo from "../../state/undo-queue.ts";
import { say, sayFailure } from "../../ui/toasts.tsx";

/** A decision about a waiting machine. */
export interface Decision {
  readonly verb: "approve" | "reject";
  readonly ids: readonly string[];
  readonly reason: string;
}

/** Decisions that can still be undone. */
export const waiting = new Observable<undo.UndoQueue<Decision>>([]);

let lastId = 0;
let timer: number | undefined;
/** Decisions being sent; each resolves to its error message, "" for success. */
const onTheWay = new Set<Promise<string>>();
/** How long sign-out waits for responses. */
const LONGEST_SEND_MS = 10_000;

/** Queue a decision. It is sent after some seconds unless it is undone. */
export function decide(what: Decision): void {
  lastId += 1;
  advance(undo.decide(waiting.value, { id: lastId, what }, performance.now()));
}

/** Undo a decision; without an id, the last one. */
export function takeBack(id = undo.latest(waiting.value)?.id): void {
  if (id !== undefined) waiting.set(undo.takeBack(waiting.value, id));
}

/** Send a decision now. */
export function sendNow(id: number): void {
  advance(undo.sendOne(waiting.value, id));
}

/** Send all queued decisions, and wait for the responses. Returns the error messages. */
export async function sendWaiting(): Promise<readonly string[]> {
  advance(undo.sendAll(waiting.value));
  if (onTheWay.size === 0) return [];
  const late = new Promise<readonly string[]>((resolve) => {
    window.setTimeout(() => resolve(["The last decisions were not confirmed."]), LONGEST_SEND_MS);
  });
  const texts = await Promise.race([Promise.all(onTheWay), late]);
  return texts.filter((text) => text !== "");
}

/**
 * Drop all queued decisions, for example when another user signs in. Returns a message about the unsent decisions;
 * "" when nothing was queued.
 */
export function dropWaiting(): string {
  const texts = waiting.value.map(({ what }) => `${what.verb} ${what.ids.join(", ").slice(0, 200)}`);
  waiting.set([]);
  return texts.length === 0 ? "" : `Decisions not sent because the session ended: ${texts.join("; ")}`.slice(0, 400);
}

function advance({ queue, send }: undo.Step<Decision>): void {
  waiting.set(queue);
  for (const { what } of send) {
    const sending = deliver(what).finally(() => onTheWay.delete(sending));
    onTheWay.add(sending);
  }
  window.clearTimeout(timer);
  const next = undo.msUntilDue(queue, performance.now());
  if (next !== null) timer = window.setTimeout(() => advance(undo.sendDue(waiting.value, performance.now())), next);
}

/**
 * Whether a machine is pending. In a large fleet, machines that are no longer loaded count as pending; the server
 * refuses the decision if they are not.
 */
function isPending(id: string): boolean {
  const row = fleet.rows.get(id);
  return row === undefined ? fleet.state.value.large : row.membership.word === "PENDING";
}

/** Send a decision, and show the user its result. Returns the error message. */
async function deliver({ verb, ids, reason }: Decision): Promise<string> {
  const what = verb === "approve" ? "Approve" : "Reject";
  const { still, late } = undo.splitStill(ids, isPending);
  const wrong = late.length === 0 ? [] : [`not sent, no longer pending: ${late.join(", ").slice(0, 200)}`];
  try {
    // Load the verbs with the first decision, because every page includes this file and few pages need the verbs.
    const { runVerb } = await import("../../actions/verbs.ts");
    const { outcomes, failure } = await runVerb(verb, still, { reason, validateOnly: false });
    if (failure !== null) wrong.push(toCallError(failure).message);
    wrong.push(...new Set(outcomes.flatMap(({ refusal }) => (refusal === "" ? [] : [refusal]))));
  } catch (cause) {
    sayFailure(what, cause);
    return `${what}: ${toCallError(cause).message}`;
  }
  if (wrong.length === 0) {
    say("good", `${verb === "approve" ? "Approved" : "Rejected"} ${still.join(", ").slice(0, 200)}`);
    return "";
  }
  const text = `${what}: ${wrong.join("; ").slice(0, 400)}`;
  say("bad", text);
  return text;
}

// Closing the page would lose queued decisions, so let the browser ask first.
window.addEventListener("beforeunload", (event) => {
  if (waiting.value.length > 0) event.preventDefault();
});
