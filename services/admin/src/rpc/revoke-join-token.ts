import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  JoinTokenService,
  type RevokeJoinTokenResponse,
  RevokeJoinTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { joinTokenEvent, joinTokenState } from "@rollcall/domain";
import { refuse } from "@rollcall/errors";
import { auditedCall } from "@rollcall/rpc";
import { AUDIT_OK, getJoinToken, type JoinToken, lockJoinToken, saveRevocation, type Tx } from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import type { AdminDeps } from "../deps.ts";
import { joinTokenNotFound, joinTokenToProto } from "../join-tokens/convert.ts";

/** End a join token. Registries lock its row when they admit by it: none does so once this is committed. */
export function revokeJoinToken({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof JoinTokenService.method.revokeJoinToken> {
  const method = JoinTokenService.method.revokeJoinToken;
  return async (request, context) => {
    const { id, reason, requestId } = request;
    const call = auditedCall(context, method);
    const { actor } = call;
    const key = requestId === "" ? null : { requestId, method: METHOD, caller: actor };
    const { result } = await store.change((tx) =>
      answerOnce(tx, key, CODEC, async () => {
        const before = await lockRevocable(tx, id);
        await saveRevocation(tx, id, { actor, reason });
        const after = await getJoinToken(tx, id);
        const event = joinTokenEvent({
          type: "join.token.revoked",
          ...{ tokenId: id, actor, message: reason },
          before: { state: joinTokenState(before) },
          after: { state: "REVOKED" },
        });
        return {
          result: create(RevokeJoinTokenResponseSchema, {
            token: joinTokenToProto(after ?? before),
          }),
          events: [event],
          audit: [{ ...call, target: id, reason, outcome: AUDIT_OK }],
        };
      }),
    );
    return result;
  };
}

const METHOD = `/${JoinTokenService.typeName}/${JoinTokenService.method.revokeJoinToken.name}`;

const CODEC = {
  encode: (answer: RevokeJoinTokenResponse) => toBinary(RevokeJoinTokenResponseSchema, answer),
  decode: (bytes: Uint8Array) => fromBinary(RevokeJoinTokenResponseSchema, bytes),
};

async function lockRevocable(tx: Tx, id: string): Promise<JoinToken> {
  const token = await lockJoinToken(tx, id);
  if (token === null) throw joinTokenNotFound(id);
  if (token.revocation === null) return token;
  const message = `join token ${id} was revoked already, by ${token.revocation.actor}`;
  throw refuse("JOIN_TOKEN_ALREADY_REVOKED", message, {
    metadata: { joinToken: id, actor: token.revocation.actor },
    subject: id,
  });
}
