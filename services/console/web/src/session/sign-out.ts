import { clientOf } from "../live/clients.ts";
import { sendWaiting } from "../pages/approvals/decisions.ts";
import { sayFailure } from "../ui/toasts.tsx";
import { leave } from "./session.ts";

/** End the session in this browser and on the server. */
export async function signOut(): Promise<void> {
  // Send queued decisions first. They belong to this session, and cannot be sent after it.
  const wrong = await sendWaiting();
  try {
    await endSessions(false);
  } catch {
    // Forget the page's half of the secret even if the server does not respond, because the cookie
    // is useless without it.
  }
  leave(wrong.length === 0 ? null : { reason: "NOT_DONE", message: wrong.join(" "), kind: "other" });
}

/**
 * End all sessions of the user, including those in other browsers. This session stays if the call
 * fails.
 */
export async function signOutEverywhere(): Promise<void> {
  const wrong = await sendWaiting();
  try {
    await endSessions(true);
  } catch (cause) {
    return sayFailure("Sign out everywhere", cause);
  }
  leave(wrong.length === 0 ? null : { reason: "NOT_DONE", message: wrong.join(" "), kind: "other" });
}

async function endSessions(all: boolean): Promise<void> {
  const { ConsoleService } = await import("@rollcall/api/rollcall/console/v1/console_pb");
  await clientOf(ConsoleService).signOut({ all });
}
