import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  GetJoinTokenResponseSchema,
  JoinTokenSchema,
  JoinTokenService,
  ListJoinTokensResponseSchema,
  RevokeJoinTokenResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { endJoinToken } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { auditOf, commit, messageCodec, readOperation } from "@rollcall/operations";
import { createPageTokens, definePolicies, type PolicyTable } from "@rollcall/rpc";
import {
  getJoinToken as getStored,
  type JoinToken,
  lastUsesOf,
  listJoinTokens as listStored,
  lockJoinToken,
  saveRevocation,
} from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { joinTokenNotFound, joinTokenToProto, joinTokenUseToProto } from "./convert.ts";
import { createJoinToken } from "./create-join-token.ts";

/**
 * Who can call each method of join tokens. Callers that can approve nodes can also create tokens that preapprove
 * nodes.
 */
export const JOIN_TOKEN_POLICIES: PolicyTable = definePolicies(JoinTokenService, {
  createJoinToken: { caller: "operator", deadlineMs: 10_000, idempotent: false },
  getJoinToken: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  listJoinTokens: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  revokeJoinToken: { caller: "operator", deadlineMs: 10_000, idempotent: false },
});

/** Register the methods of join tokens. */
export function routeJoinTokens(router: ConnectRouter, services: AdminServices): void {
  router.service(JoinTokenService, {
    createJoinToken: createJoinToken(services),
    getJoinToken: getJoinToken(services),
    listJoinTokens: listJoinTokens(services),
    revokeJoinToken: revokeJoinToken(services),
  });
}

const MOST_USES = 100;

/** Return one join token, and the last machines that it admitted. */
function getJoinToken({ store }: AdminServices): MethodImpl<typeof JoinTokenService.method.getJoinToken> {
  return async ({ id }) => {
    const token = await getStored(store.db, id);
    if (token === null) throw await joinTokenNotFound(store.db, id);
    const uses = await lastUsesOf(store.db, id, MOST_USES);
    return create(GetJoinTokenResponseSchema, {
      token: joinTokenToProto(token),
      lastUses: uses.map(joinTokenUseToProto),
    });
  };
}

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListJoinTokens";

/** Return a page of join tokens, newest first. */
function listJoinTokens({ store }: AdminServices): MethodImpl<typeof JoinTokenService.method.listJoinTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(LISTING, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const rows = readRows<JoinToken, bigint | null>({
      limit,
      from: cursor === null ? null : BigInt(cursor),
      read: (before, count) => listStored(store.db, { before, limit: count }),
      cursorOf: ({ number }) => number,
    });
    const page = await readPage(context, {
      ...{ rows, limit, item: JoinTokenSchema, toMessage: joinTokenToProto },
    });
    return page.answer(ListJoinTokensResponseSchema, "tokens", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(LISTING, `${page.next.number}`),
    });
  };
}

/**
 * Revoke a join token. Registries lock its row when they admit a node with it, so no registry can admit a node
 * with it after this commit.
 */
function revokeJoinToken(services: AdminServices): MethodImpl<typeof JoinTokenService.method.revokeJoinToken> {
  const method = JoinTokenService.method.revokeJoinToken;
  const options = { codec: messageCodec(RevokeJoinTokenResponseSchema) };
  return async (request, context) => {
    const { id } = request;
    const operation = readOperation(services, method, request, context);
    return commit(services, operation, options, async (tx) => {
      const before = await lockJoinToken(tx, id);
      if (before === null) throw await joinTokenNotFound(tx, id);
      const decided = endJoinToken(before, operation.by);
      if (!decided.ok) throw refusalError(decided.refusal, id);
      for (const revocation of decided.effects) await saveRevocation(tx, id, revocation);
      const token = joinTokenToProto((await getStored(tx, id)) ?? before);
      const result = create(RevokeJoinTokenResponseSchema, { token });
      return { result, events: decided.events, audit: [auditOf(operation, id)] };
    });
  };
}
