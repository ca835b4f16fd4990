import { endAccessToken, type NewEvent } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { type AccessToken, revokeAccessToken, type Tx } from "@rollcall/store";
import { actorFor } from "./convert.ts";

/**
 * End a session. For whom it acts that is ending their own, whether it is the one that they call with or not; for
 * others it is not. It is locked, and has not been revoked. Returns the events.
 */
export async function endSession(
  tx: Tx,
  session: AccessToken,
  by: { readonly actor: string; readonly message: string },
): Promise<readonly NewEvent[]> {
  const { id, role } = session;
  const isOwn = session.session !== null && actorFor(session.session) === by.actor;
  const decided = endAccessToken(session, { ...by, role, tokenId: null, sessionId: isOwn ? id : null });
  if (!decided.ok) throw refusalError(decided.refusal, id);
  for (const revocation of decided.effects) await revokeAccessToken(tx, id, revocation);
  return decided.events;
}
