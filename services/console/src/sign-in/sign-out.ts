import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { ConsoleService, SignOutResponseSchema } from "@rollcall/api/rollcall/console/v1/console_pb";
import { accessTokenState, endAccessToken } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { auditedCall, callerOf } from "@rollcall/rpc";
import { AUDIT_OK, lockAccessToken, revokeAccessToken } from "@rollcall/store";
import type { ConsoleServices } from "../console-services.ts";
import type { SessionCookie } from "./session-cookie.ts";

/** End the caller's own session. */
export function signOut({
  store,
  clock,
  cookie,
}: ConsoleServices & { readonly cookie: SessionCookie }): MethodImpl<typeof ConsoleService.method.signOut> {
  return async (_request, context) => {
    const caller = callerOf(context);
    if (caller.kind === "anonymous" || caller.session === undefined) {
      const message =
        "the call comes without a session of the console: an access token is revoked by RevokeAccessToken";
      throw refuse("SESSION_NOT_ALLOWED", message, { subject: "session" });
    }
    const { session, role } = caller;
    const actor = actorOf(caller);
    const by = { actor, message: "signed out", atMs: clock.wallMs(), role, tokenId: null, sessionId: session };
    await store.change(async (tx) => {
      const kept = await lockAccessToken(tx, session);
      const audit = { ...auditedCall(context, ConsoleService.method.signOut), target: session };
      const entry = { ...audit, reason: "", outcome: AUDIT_OK };
      // It was just revoked from elsewhere: signed out it is.
      if (kept === null || accessTokenState(kept) === "REVOKED") return { result: null, events: [], audit: [entry] };
      const decided = endAccessToken(kept, by);
      if (!decided.ok) throw refusalError(decided.refusal, session);
      for (const revocation of decided.effects) await revokeAccessToken(tx, session, revocation);
      return { result: null, events: decided.events, audit: [entry] };
    });
    for (const isSecure of [true, false]) context.responseHeader.append("set-cookie", cookie.clear(isSecure));
    return create(SignOutResponseSchema);
  };
}
