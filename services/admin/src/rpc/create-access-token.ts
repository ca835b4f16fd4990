import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  AccessService,
  AccessTokenSchema,
  type CreateAccessTokenResponse,
  CreateAccessTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { accessTokenCreated } from "@rollcall/domain";
import { bearerOf } from "@rollcall/identity";
import { auditedCall } from "@rollcall/rpc";
import {
  AUDIT_OK,
  accessTokenHash,
  findAccessToken,
  firstAnswer,
  insertAccessToken,
  saveAnswer,
  type Tx,
} from "@rollcall/store";
import { accessTokenToProto, parseRole, parseTtl } from "../access/convert.ts";
import { derivedTokenText, newSalt, newTokenId, newTokenText, type TokenText } from "../access/token-text.ts";
import type { AdminDeps } from "../deps.ts";
import { requestKey } from "../request-key.ts";

/** Make an access token, and show its text this once. */
export function createAccessToken({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AccessService.method.createAccessToken> {
  const method = AccessService.method.createAccessToken;
  return async (request, context) => {
    const call = auditedCall(context, method);
    const { actor } = call;
    const bearer = bearerIn(context);
    const key = requestKey(method, request.requestId, actor);
    const { result } = await store.change(async (tx) => {
      const first = key === null ? null : await firstAnswer(tx, key);
      if (first !== null) return { result: await repeated(tx, first, bearer), events: [] };
      const salt = newSalt();
      const made = key === null ? newTokenText() : derivedTokenText(newTokenId(), bearer, salt);
      const [role, ttlMs] = [parseRole(request), parseTtl(request)];
      const fields = { id: made.id, name: request.name, role, ttlMs, createdBy: actor };
      const kept = await insertAccessToken(tx, { ...fields, hash: accessTokenHash(made.text) });
      const answer = answerOf(accessTokenToProto(kept), made);
      if (key !== null) await saveAnswer(tx, key, withoutText(answer, salt));
      const audit = [{ ...call, target: made.id, reason: request.name, outcome: AUDIT_OK }];
      return { result: answer, events: [accessTokenCreated(kept, ttlMs, actor)], audit };
    });
    return result;
  };
}

const SALT_BYTES = 32;

/** What is remembered of an answer: the salt and the token, never the text. */
function withoutText({ accessToken }: CreateAccessTokenResponse, salt: Uint8Array): Uint8Array {
  const token = toBinary(AccessTokenSchema, accessToken ?? create(AccessTokenSchema));
  return Buffer.concat([salt, token]);
}

/** The first answer again: with the text, as long as the caller comes with the token that it came with then. */
async function repeated(tx: Tx, remembered: Uint8Array, bearer: string): Promise<CreateAccessTokenResponse> {
  const salt = remembered.subarray(0, SALT_BYTES);
  const token = fromBinary(AccessTokenSchema, remembered.subarray(SALT_BYTES));
  const again = derivedTokenText(token.id, bearer, salt);
  const isSame = (await findAccessToken(tx, accessTokenHash(again.text))) !== null;
  return answerOf(token, isSame ? again : { ...again, text: "" });
}

function answerOf(
  accessToken: CreateAccessTokenResponse["accessToken"],
  { text }: TokenText,
): CreateAccessTokenResponse {
  const token = accessToken === undefined ? {} : { accessToken };
  return create(CreateAccessTokenResponseSchema, { ...token, text });
}

function bearerIn({ requestHeader }: Pick<HandlerContext, "requestHeader">): string {
  const bearer = bearerOf(requestHeader.get("authorization"));
  if (bearer === null) throw new Error("a caller with a role came without a token");
  return bearer;
}
