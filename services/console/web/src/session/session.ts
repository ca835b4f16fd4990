import type { Role, WhoAmIResponse } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { groupsLeftOutText } from "@rollcall/domain";
import { type CallError, toCallError } from "../live/call-error.ts";
import { access } from "../live/clients.ts";
import { fleet } from "../live/fleet.ts";
import { log } from "../live/log.ts";
import { Observable, useObservable } from "../live/observable.ts";
import { sessionEnded } from "../live/session-end.ts";
import { dropWaiting } from "../pages/approvals/decisions.ts";
import { type Rights, rightsOf, roleWord } from "../state/roles.ts";
import { say } from "../ui/toasts.tsx";
import { dropProof, forgetProof, onProofChange } from "./proof.ts";

/** Who is signed in. */
export type Session =
  | { readonly state: "unknown" }
  | { readonly state: "signed-out"; readonly why: CallError | null }
  /** The server is unreachable at the moment. */
  | { readonly state: "away"; readonly error: CallError }
  | {
      readonly state: "signed-in";
      readonly actor: string;
      readonly name: string;
      readonly role: Role;
      readonly rights: Rights;
      readonly clusterId: string;
      /** Explains to the user why no group grants a role; null if groups count. */
      readonly leftOut: string | null;
    };

export const session = new Observable<Session>({ state: "unknown" });

/** Ask the server who is signed in, and then start following the fleet. */
export async function openSession(): Promise<void> {
  try {
    enter(await access.whoAmI({}));
  } catch (cause) {
    const error = toCallError(cause);
    const isRefused = error.kind === "signed-out" || error.kind === "forbidden";
    session.set(isRefused ? { state: "signed-out", why: asWhy(takeNote()) } : { state: "away", error });
  }
}

/** Leave when the server rejects the session or another tab changes it. Called once. */
export function followSession(): void {
  sessionEnded.subscribe(() => {
    if (sessionEnded.value !== null) leave(sessionEnded.value);
  });
  // Leave if another tab signed in or out, because no data of this session may remain.
  onProofChange(() => {
    forgetProof();
    stopStreams();
    const lost = dropWaiting();
    if (lost !== "") sessionStorage.setItem(NOTE_KEY, lost);
    window.location.reload();
  });
}

/** Where this tab stores a message to show after a reload. */
const NOTE_KEY = "rollcall.note";

function takeNote(): string {
  const note = sessionStorage.getItem(NOTE_KEY) ?? "";
  sessionStorage.removeItem(NOTE_KEY);
  return note;
}

function asWhy(message: string): CallError | null {
  return message === "" ? null : { reason: "NOT_SENT", message, kind: "other" };
}

function stopStreams(): void {
  fleet.following?.stop();
  log.following?.stop();
}

/** Stop everything and show the sign-in page. */
export function leave(why: CallError | null): void {
  if (session.value.state === "signed-out") return;
  dropProof();
  stopStreams();
  session.set({ state: "signed-out", why: asWhy(dropWaiting()) ?? why });
}

function enter(who: WhoAmIResponse): void {
  const name = who.credential.case === "accessToken" ? who.credential.value.name : "";
  const claim = who.credential.case === "person" ? who.credential.value.groupsLeftOut : "";
  fleet.start();
  log.start();
  session.set({
    state: "signed-in",
    actor: who.actor,
    name: name || who.actor,
    role: who.role,
    rights: rightsOf(who.role),
    clusterId: who.clusterId,
    leftOut: groupsLeftOutText(claim, roleWord(who.role)),
  });
  const note = takeNote();
  if (note !== "") say("bad", note);
}

const NO_RIGHTS: Rights = { operate: false, submit: false, administer: false };

/** The rights of the signed-in user. */
export function useRights(): Rights {
  const current = useObservable(session);
  return current.state === "signed-in" ? current.rights : NO_RIGHTS;
}
