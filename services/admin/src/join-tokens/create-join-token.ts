import { timingSafeEqual } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  CreateJoinTokenResponseSchema,
  JoinTokenSchema,
  JoinTokenService,
  type JoinToken as ProtoToken,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { joinTokenEvent, joinTokenText } from "@rollcall/domain";
import { type AnswerCodec, auditOf, commit, readOperation } from "@rollcall/operations";
import { bearerIn } from "@rollcall/rpc";
import { insertJoinToken, joinTokenHash } from "@rollcall/store";
import { derivedSecret, newSalt, newTokenId } from "../access/token-text.ts";
import type { AdminServices } from "../admin-services.ts";
import { joinTokenToProto, parseTerms, type TokenTerms } from "./convert.ts";

/** A token that was created by this call, or by an earlier call with the same request id. */
interface Made {
  readonly token: ProtoToken;
  /** The token's text; "" when the request was repeated with another access token. */
  readonly text: string;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

/** Create a join token, and return its text, which is never returned again. */
export function createJoinToken(services: AdminServices): MethodImpl<typeof JoinTokenService.method.createJoinToken> {
  const method = JoinTokenService.method.createJoinToken;
  const { store } = services;
  return async (request, context) => {
    const terms = parseTerms(request);
    const operation = readOperation(services, method, request, context, request.description);
    const { actor } = operation.by;
    const bearer = bearerIn(context);
    const options = { codec: codecFor(store.clusterId(), bearer) };
    const { token, text } = await commit(services, operation, options, async (tx) => {
      const made = newText(store.clusterId(), bearer);
      const hash = joinTokenHash(made.text);
      const kept = await insertJoinToken(tx, { ...terms, id: made.id, hash, createdBy: actor });
      return {
        result: { token: joinTokenToProto(kept), text: made.text, salt: made.salt, hash },
        events: [createdEvent(made.id, actor, terms)],
        audit: [auditOf(operation, made.id)],
      };
    });
    return create(CreateJoinTokenResponseSchema, { token, text });
  };
}

const SALT_BYTES = 32;
const HASH_BYTES = 32;

/**
 * How the response is stored: the salt, the hash of the token's text, and the token. The text is never stored. It is
 * derived again with the salt, and the hash shows whether the result is the same text.
 */
function codecFor(clusterId: string, bearer: string): AnswerCodec<Made> {
  return {
    encode: ({ token, salt, hash }) => Buffer.concat([salt, hash, toBinary(JoinTokenSchema, token)]),
    decode: (bytes) => {
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

/** The text of a new join token. */
interface NewText {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** The text that machines present. */
  readonly text: string;
  /** Random bytes. Together with the caller's token, they yield the secret again. */
  readonly salt: Uint8Array;
}

/** The stored part of a text, which is not enough to derive it. */
type TextTrace = Pick<NewText, "id" | "salt"> & { readonly hash: Uint8Array };

/**
 * Create the text of a new token. Its secret is derived from random bytes and the caller's own token, which is not
 * stored. A caller that repeats a request therefore gets the same text, but the random bytes in the store are not
 * enough to derive it.
 */
function newText(clusterId: string, bearer: string): NewText {
  const id = newTokenId();
  const salt = newSalt();
  return { id, salt, text: textOf(clusterId, bearer, { id, salt }) };
}

/** The text, if it was derived from this bearer token; otherwise "". */
function textAgain(clusterId: string, bearer: string, trace: TextTrace): string {
  const text = textOf(clusterId, bearer, trace);
  return timingSafeEqual(joinTokenHash(text), trace.hash) ? text : "";
}

function textOf(clusterId: string, bearer: string, { id, salt }: Pick<NewText, "id" | "salt">): string {
  return joinTokenText(clusterId, id, derivedSecret("join", id, bearer, salt).toString("base64url"));
}
