import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type ConsoleService,
  CreateSignInCodeResponseSchema,
  GetSignInCodeResponseSchema,
  ConsoleService as Service,
} from "@rollcall/api/rollcall/console/v1/console_pb";
import { fromSessionRefusal, moreCodesRefusal, SIGN_IN_LIMITS, signInCodeRefusal } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { actorOf } from "@rollcall/identity";
import { auditedCall, callerOf, peerOfCall, tokenAttempt } from "@rollcall/rpc";
import {
  AUDIT_OK,
  countSignInCodes,
  findSignInCode,
  getAccessToken,
  insertSignInCode,
  lockSignIns,
} from "@rollcall/store";
import type { ConsoleServices } from "../console-services.ts";
import { actorFor, consoleError, identityOf, roleToProto } from "./convert.ts";
import { hashOf, newCodeText } from "./session-secret.ts";

/** Create a code that signs a browser in as the caller. */
export function createSignInCode({
  store,
}: ConsoleServices): MethodImpl<typeof ConsoleService.method.createSignInCode> {
  const method = Service.method.createSignInCode;
  return async (_request, context) => {
    const caller = callerOf(context);
    if (caller.kind === "anonymous") throw new Error("a method that takes a role has no caller");
    const refusal = fromSessionRefusal(caller.session ?? null);
    if (refusal !== null) throw refusalError(refusal, caller.session ?? "");
    const actor = actorOf(caller);
    const { owner, role, name, endsAtMs } = identityOf(caller);
    const code = newCodeText();
    const { result } = await store.change(async (tx) => {
      await lockSignIns(tx, actor);
      const tooMany = moreCodesRefusal(await countSignInCodes(tx, owner));
      if (tooMany !== null) throw refusalError(tooMany, actor, { retryAfterMs: SIGN_IN_LIMITS.codeTtlMs });
      const shown = owner.kind === "token" ? ((await getAccessToken(tx, owner.id))?.name ?? "") : name;
      const kept = { hash: hashOf(code), owner, role, name: shown, endsAtMs, ttlMs: SIGN_IN_LIMITS.codeTtlMs };
      const expiresAtMs = await insertSignInCode(tx, kept);
      const audit = { ...auditedCall(context, method), target: actor, reason: "", outcome: AUDIT_OK };
      return { result: expiresAtMs, events: [], audit: [audit] };
    });
    return create(CreateSignInCodeResponseSchema, { code, expireTime: timestampFromMs(result) });
  };
}

/** Return the user whom a code signs in, while the code is valid. */
export function getSignInCode({
  store,
  failures,
}: ConsoleServices): MethodImpl<typeof ConsoleService.method.getSignInCode> {
  return async ({ code }, context) => {
    const attempt = tokenAttempt(peerOfCall(context), `code ${code}`);
    failures?.check(attempt);
    const found = await findSignInCode(store.db, hashOf(code));
    const refusal = signInCodeRefusal(found);
    if (refusal !== null || found === null) {
      const error = refusal === null ? new Error("a code is missing and not refused") : consoleError(refusal, "code");
      // Count only unknown codes as failures, because a caller that asks whether its code was used knows the code.
      if (found === null) failures?.ended(attempt, error);
      throw error;
    }
    return create(GetSignInCodeResponseSchema, {
      actor: actorFor(found.owner),
      role: roleToProto(found.role),
      name: found.name,
      expireTime: timestampFromMs(found.expiresAtMs),
    });
  };
}
