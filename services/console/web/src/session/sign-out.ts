import { clientOf } from "../live/clients.ts";
import { sendWaiting } from "../pages/approvals/decisions.ts";
import { sayFailure } from "../ui/toasts.tsx";
import { leave } from "./session.ts";

/** End the session here and on the server. */
export async function signOut(): Promise<void> {
  // What waits was decided under this session, and cannot be sent after it.
  const wrong = await sendWaiting();
  try {
    await endSessions(false);
  } catch {
    // The page forgets its half whatever the server says; without that half the other is worth nothing.
  }
  leave(wrong.length === 0 ? null : { reason: "NOT_DONE", message: wrong.join(" "), kind: "other" });
}

/** End every session that acts for the reader, in other browsers too. This one stays when that fails. */
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
