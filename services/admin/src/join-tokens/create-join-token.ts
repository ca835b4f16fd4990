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
import { type AnswerCodec, auditOf, bearerIn, commit, readOperation } from "@rollcall/operations";
import { insertJoinToken, joinTokenHash } from "@rollcall/store";
import { derivedSecret, newSalt, newTokenId } from "../access/token-text.ts";
import type { AdminServices } from "../admin-services.ts";
import { joinTokenToProto, parseTerms, type TokenTerms } from "./convert.ts";

/** A token that was made, now or by the first request of this id. */
interface Made {
  readonly token: ProtoToken;
  /** Empty when the request is repeated with another access token. */
  readonly text: string;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

/** Make a join token, and show its text this once. */
export function createJoinToken(services: AdminServices): MethodImpl<typeof JoinTokenService.method.createJoinToken> {
  const method = JoinTokenService.method.createJoinToken;
  const { store } = services;
  return async (request, context) => {
    const { description: reason, requestId } = request;
    const terms = parseTerms(request);
    const operation = readOperation(services, method, { reason, requestId }, context);
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
 * What is remembered of the answer: the token, and what tells whether a text that is derived again is the same. Never
 * the text.
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

/** A join token that was just made. */
interface NewText {
  /** Public: 12 hexadecimal digits. */
  readonly id: string;
  /** What machines give. */
  readonly text: string;
  /** With the caller's own token, it gives the same secret again. */
  readonly salt: Uint8Array;
}

/** What is remembered of a text: not enough to tell it. */
type TextTrace = Pick<NewText, "id" | "salt"> & { readonly hash: Uint8Array };

/**
 * Make the text of a new token. Its secret follows from random bytes and the caller's own token, which is kept nowhere:
 * a caller that repeats a request gets the same text, and the record, which has the random bytes, cannot tell it.
 */
function newText(clusterId: string, bearer: string): NewText {
  const id = newTokenId();
  const salt = newSalt();
  return { id, salt, text: textOf(clusterId, bearer, { id, salt }) };
}

/** The text that was made with this bearer; empty for any other. */
function textAgain(clusterId: string, bearer: string, trace: TextTrace): string {
  const text = textOf(clusterId, bearer, trace);
  return timingSafeEqual(joinTokenHash(text), trace.hash) ? text : "";
}

function textOf(clusterId: string, bearer: string, { id, salt }: Pick<NewText, "id" | "salt">): string {
  return joinTokenText(clusterId, id, derivedSecret("join", id, bearer, salt).toString("base64url"));
}
