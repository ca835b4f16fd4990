import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";
import {
  CreateJoinTokenResponseSchema,
  JoinTokenSchema,
  JoinTokenService,
  type JoinToken as ProtoToken,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { joinTokenEvent } from "@rollcall/domain";
import { bearerOf } from "@rollcall/identity";
import { auditedCall } from "@rollcall/rpc";
import { AUDIT_OK, insertJoinToken, joinTokenHash } from "@rollcall/store";
import { answerOnce } from "../answer-once.ts";
import type { AdminDeps } from "../deps.ts";
import { joinTokenToProto, parseTerms, type TokenTerms } from "../join-tokens/convert.ts";
import { newText, textAgain } from "../join-tokens/token-text.ts";

/** A token that was made, now or by the first request of this id. */
interface Made {
  readonly token: ProtoToken;
  /** Empty when the request is repeated with another access token. */
  readonly text: string;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

/** Make a join token, and show its text this once. */
export function createJoinToken({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof JoinTokenService.method.createJoinToken> {
  const method = JoinTokenService.method.createJoinToken;
  return async (request, context) => {
    const { description, requestId } = request;
    const terms = parseTerms(request);
    const call = auditedCall(context, method);
    const { actor } = call;
    const key = requestId === "" ? null : { requestId, method: METHOD, caller: actor };
    const codec = codecFor(store.clusterId(), bearerIn(context));
    const { result } = await store.change((tx) =>
      answerOnce(tx, key, codec, async () => {
        const { id, text, salt } = newText(store.clusterId(), bearerIn(context));
        const hash = joinTokenHash(text);
        const kept = await insertJoinToken(tx, { ...terms, id, hash, createdBy: actor });
        return {
          result: { token: joinTokenToProto(kept), text, salt, hash },
          events: [createdEvent(id, actor, terms)],
          audit: [{ ...call, target: id, reason: description, outcome: AUDIT_OK }],
        };
      }),
    );
    return create(CreateJoinTokenResponseSchema, { token: result.token, text: result.text });
  };
}

const METHOD = `/${JoinTokenService.typeName}/${JoinTokenService.method.createJoinToken.name}`;
const SALT_BYTES = 32;
const HASH_BYTES = 32;

/**
 * What is remembered of the answer: the token, and what tells whether a text that is derived again is the same. Never
 * the text.
 */
function codecFor(clusterId: string, bearer: string) {
  return {
    encode: ({ token, salt, hash }: Made): Uint8Array => Buffer.concat([salt, hash, toBinary(JoinTokenSchema, token)]),
    decode: (bytes: Uint8Array): Made => {
      const salt = bytes.subarray(0, SALT_BYTES);
      const hash = bytes.subarray(SALT_BYTES, SALT_BYTES + HASH_BYTES);
      const token = fromBinary(JoinTokenSchema, bytes.subarray(SALT_BYTES + HASH_BYTES));
      return {
        token,
        salt,
        hash,
        text: textAgain(clusterId, bearer, { id: token.id, salt, hash }),
      };
    },
  };
}

function createdEvent(tokenId: string, actor: string, terms: TokenTerms) {
  const { description: message, ...after } = terms;
  return joinTokenEvent({
    type: "join.token.created",
    ...{ tokenId, actor, message, before: null, after },
  });
}

function bearerIn({ requestHeader }: Pick<HandlerContext, "requestHeader">): string {
  const bearer = bearerOf(requestHeader.get("authorization"));
  if (bearer === null) throw new Error("a caller with a role came without a token");
  return bearer;
}
