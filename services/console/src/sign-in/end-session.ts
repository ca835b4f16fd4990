import { endAccessToken, type NewEvent } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { type AccessToken, revokeAccessToken, type Tx } from "@rollcall/store";

/**
 * End a session for whom it acts: by themselves, whether it is the one that they call with or not. It is locked, and
 * has not been revoked. Returns the events.
 */
export async function endSession(
  tx: Tx,
  session: AccessToken,
  by: { readonly actor: string; readonly message: string },
): Promise<readonly NewEvent[]> {
  const { id, role } = session;
  const decided = endAccessToken(session, { ...by, role, tokenId: null, sessionId: id });
  if (!decided.ok) throw refusalError(decided.refusal, id);
  for (const revocation of decided.effects) await revokeAccessToken(tx, id, revocation);
  return decided.events;
}
