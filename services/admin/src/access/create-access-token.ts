import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  AccessService,
  type AccessToken,
  AccessTokenSchema,
  CreateAccessTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { accessTokenCreated } from "@rollcall/domain";
import { type AnswerCodec, auditOf, commit, readOperation } from "@rollcall/operations";
import { bearerIn } from "@rollcall/rpc";
import { accessTokenHash, findAccessToken, insertAccessToken } from "@rollcall/store";
import type { AdminServices } from "../admin-services.ts";
import { accessTokenToProto, parseRole, parseTtl } from "./convert.ts";
import { derivedTokenText, newSalt, newTokenId, newTokenText } from "./token-text.ts";

/** A token that was created by this call, or by an earlier call with the same request id. */
interface Made {
  readonly token: AccessToken;
  /** The token's text; "" when the request was repeated with another access token. */
  readonly text: string;
  readonly salt: Uint8Array;
}

/** Create an access token, and return its text, which is never returned again. */
export function createAccessToken(services: AdminServices): MethodImpl<typeof AccessService.method.createAccessToken> {
  const method = AccessService.method.createAccessToken;
  return async (request, context) => {
    const { name } = request;
    const operation = readOperation(services, method, request, context, name);
    const { actor } = operation.by;
    const bearer = bearerIn(context);
    const { token, text } = await commit(services, operation, { codec: codecFor(bearer) }, async (tx) => {
      const salt = newSalt();
      const made = operation.key === null ? newTokenText() : derivedTokenText(newTokenId(), bearer, salt);
      const [role, ttlMs] = [parseRole(request), parseTtl(request)];
      const fields = { id: made.id, name, role, ttlMs, createdBy: actor };
      const kept = await insertAccessToken(tx, { ...fields, hash: accessTokenHash(made.text) });
      return {
        result: { token: accessTokenToProto(kept), text: made.text, salt },
        events: [accessTokenCreated(kept, ttlMs, actor)],
        audit: [auditOf(operation, made.id)],
      };
    });
    return create(CreateAccessTokenResponseSchema, { accessToken: token, text });
  };
}

const SALT_BYTES = 32;

/**
 * How the response is stored: the salt and the token, never the text. The text can be derived again as long as the
 * caller uses the same access token.
 */
function codecFor(bearer: string): AnswerCodec<Made> {
  return {
    encode: ({ token, salt }) => Buffer.concat([salt, toBinary(AccessTokenSchema, token)]),
    decode: async (bytes, tx) => {
      const salt = bytes.subarray(0, SALT_BYTES);
      const token = fromBinary(AccessTokenSchema, bytes.subarray(SALT_BYTES));
      const { text } = derivedTokenText(token.id, bearer, salt);
      const isSame = (await findAccessToken(tx, accessTokenHash(text))) !== null;
      return { token, salt, text: isSame ? text : "" };
    },
  };
}
