import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { ConsoleService, SignOutResponseSchema } from "@rollcall/api/rollcall/console/v1/console_pb";
import { endAccessToken, type NewEvent } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { auditedCall, callerOf, noteRevision } from "@rollcall/rpc";
import {
  type AccessToken,
  AUDIT_OK,
  endSignInCodes,
  lockAccessToken,
  lockSessions,
  lockSignIns,
  revokeAccessToken,
  type Tx,
} from "@rollcall/store";
import type { ConsoleServices } from "../console-services.ts";
import { actorFor, identityOf } from "./convert.ts";
import type { SessionCookie } from "./session-cookie.ts";

/** End the caller's session, or all sessions of the caller and the codes that would create another. */
export function signOut({
  store,
  cookie,
}: ConsoleServices & { readonly cookie: SessionCookie }): MethodImpl<typeof ConsoleService.method.signOut> {
  return async ({ all }, context) => {
    const caller = callerOf(context);
    if (caller.kind === "anonymous") throw new Error("a method that takes a role has no caller");
    const { session } = caller;
    if (session === undefined && !all) {
      const message = "this call has no console session; use RevokeAccessToken to revoke an access token";
      throw refuse("SESSION_NOT_ALLOWED", message, { subject: "session" });
    }
    const actor = actorOf(caller);
    const { owner } = identityOf(caller);
    const message = all ? "signed out everywhere" : "signed out";
    const { result, revision } = await store.change(async (tx) => {
      if (all) await endSignInCodes(tx, owner);
      await lockSignIns(tx, actor);
      const own = all || session === undefined ? null : await lockAccessToken(tx, session);
      // End nothing if the caller's own session was just revoked elsewhere, because the caller is already signed out.
      const ending = all ? await lockSessions(tx, owner) : own === null || own.revocation !== null ? [] : [own];
      const events = [];
      for (const one of ending) events.push(...(await endSession(tx, one, { actor, message })));
      const target = all || session === undefined ? actor : session;
      const audit = { ...auditedCall(context, ConsoleService.method.signOut), target, reason: "", outcome: AUDIT_OK };
      return { result: ending.length, events, audit: [audit] };
    });
    noteRevision(context, revision);
    for (const isSecure of [true, false]) context.responseHeader.append("set-cookie", cookie.clear(isSecure));
    return create(SignOutResponseSchema, { ended: result });
  };
}

/**
 * End a session that is locked and not yet revoked. The event says whether its owner or someone else ended it. The
 * owner can end it from another session. Returns the events.
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
