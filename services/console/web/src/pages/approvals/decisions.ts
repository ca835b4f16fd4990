import { toCallError } from "../../live/call-error.ts";
import { fleet } from "../../live/fleet.ts";
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
/** Decisions on their way; each answers what went wrong, "" when nothing did. */
const onTheWay = new Set<Promise<string>>();
/** Sign-out waits no longer for answers. */
const LONGEST_SEND_MS = 10_000;

/** Decide: it is sent after some seconds, unless it is taken back. */
export function decide(what: Decision): void {
  lastId += 1;
  advance(undo.decide(waiting.value, { id: lastId, what }, performance.now()));
}

/** Take a decision back; without an id the last one. */
export function takeBack(id = undo.latest(waiting.value)?.id): void {
  if (id !== undefined) waiting.set(undo.takeBack(waiting.value, id));
}

/** Send a decision now. */
export function sendNow(id: number): void {
  advance(undo.sendOne(waiting.value, id));
}

/** Send everything, and wait for the answers. Answers what went wrong. */
export async function sendWaiting(): Promise<readonly string[]> {
  advance(undo.sendAll(waiting.value));
  if (onTheWay.size === 0) return [];
  const late = new Promise<readonly string[]>((resolve) => {
    window.setTimeout(() => resolve(["No answer came to the last decisions."]), LONGEST_SEND_MS);
  });
  const texts = await Promise.race([Promise.all(onTheWay), late]);
  return texts.filter((text) => text !== "");
}

/** Drop everything that waits, as when the reader is another one. Says what was not sent; "" when nothing waited. */
export function dropWaiting(): string {
  const texts = waiting.value.map(({ what }) => `${what.verb} ${what.ids.join(", ").slice(0, 200)}`);
  waiting.set([]);
  return texts.length === 0 ? "" : `Not sent, since the session ended: ${texts.join("; ")}`.slice(0, 400);
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

/** What a page no longer looks at of a large fleet is the server's to refuse. */
function isPending(id: string): boolean {
  const row = fleet.rows.get(id);
  return row === undefined ? fleet.large.value : row.membership.word === "PENDING";
}

/** Send a decision, and tell the reader what came of it. Answers what went wrong. */
async function deliver({ verb, ids, reason }: Decision): Promise<string> {
  const what = verb === "approve" ? "Approve" : "Reject";
  const { still, late } = undo.splitStill(ids, isPending);
  const wrong = late.length === 0 ? [] : [`not sent, since they wait no more: ${late.join(", ").slice(0, 200)}`];
  try {
    // Loaded with the first decision: every page has this file, and few have anything to decide.
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

// A page that is closed would lose what waits: the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (waiting.value.length > 0) event.preventDefault();
});
