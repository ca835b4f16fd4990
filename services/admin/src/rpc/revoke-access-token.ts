import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AccessService,
  type RevokeAccessTokenResponse,
  RevokeAccessTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { accessTokenRevoked, type Revoker, revocationRefusal, strangersTokenRefusal } from "@rollcall/domain";
import { refusalError, refuse } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import {
  type AccessToken,
  AUDIT_OK,
  countAccessTokens,
  firstAnswer,
  lockAccessToken,
  revokeAccessToken as revokeStored,
  saveAnswer,
  type Tx,
} from "@rollcall/store";
import { accessTokenToProto, knownCallerOf, revokerOf } from "../access/convert.ts";
import type { AdminDeps } from "../deps.ts";
import { requestKey } from "../request-key.ts";

/** End an access token for good. */
export function revokeAccessToken({
  store,
  log,
}: Pick<AdminDeps, "store" | "log">): MethodImpl<typeof AccessService.method.revokeAccessToken> {
  const method = AccessService.method.revokeAccessToken;
  return async (request, context) => {
    const { id, reason } = request;
    const by = revokerOf(knownCallerOf(context));
    // Before it is looked for: who may not revoke learns nothing of the ids that there are.
    const strangers = strangersTokenRefusal(id, by);
    if (strangers !== null) throw refusalError(strangers, id);
    const call = auditedCall(context, method);
    const { actor } = call;
    const key = requestKey(method, request.requestId, actor);
    const { result } = await store.change(async (tx) => {
      const first = key === null ? null : await firstAnswer(tx, key);
      if (first !== null) {
        return { result: fromBinary(RevokeAccessTokenResponseSchema, first), events: [] };
      }
      const token = await lockRevocable(tx, id);
      const answer = await revoke(tx, token, { ...by, actor, reason });
      if (key !== null) {
        await saveAnswer(tx, key, toBinary(RevokeAccessTokenResponseSchema, answer));
      }
      const event = accessTokenRevoked(token, { ...by, actor, message: reason });
      const audit = [{ ...call, target: id, reason, outcome: AUDIT_OK }];
      return { result: answer, events: [event], audit };
    });
    if (result.adminTokensLeft === 0) log.warn({ actor, token: id }, "no admin token is left");
    return result;
  };
}

async function lockRevocable(tx: Tx, id: string): Promise<AccessToken> {
  const token = await lockAccessToken(tx, id);
  if (token === null) {
    const message = `no access token has the id ${id}; \`rollcall access list\` shows those that there are`;
    throw refuse("ACCESS_TOKEN_NOT_FOUND", message, { metadata: { token: id } });
  }
  const refusal = revocationRefusal(token);
  if (refusal !== null) throw refusalError(refusal, id);
  return token;
}

async function revoke(
  tx: Tx,
  token: AccessToken,
  by: Revoker & { readonly actor: string; readonly reason: string },
): Promise<RevokeAccessTokenResponse> {
  await revokeStored(tx, token.id, by);
  const after = await lockAccessToken(tx, token.id);
  return create(RevokeAccessTokenResponseSchema, {
    accessToken: accessTokenToProto(after ?? token),
    adminTokensLeft: await countAccessTokens(tx, "admin"),
  });
}
