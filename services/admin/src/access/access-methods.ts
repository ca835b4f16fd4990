import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, MethodImpl } from "@connectrpc/connect";
import {
  AccessService,
  AccessTokenSchema,
  GetLoginOptionsResponseSchema,
  ListAccessTokensResponseSchema,
  PersonSchema,
  type RevokeAccessTokenResponse,
  RevokeAccessTokenResponseSchema,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { anonymousTokenRefusal, endAccessToken, type Revoker } from "@rollcall/domain";
import { refusalError } from "@rollcall/errors";
import { actorOf, type IdentifiedCaller } from "@rollcall/identity";
import { auditOf, commit, messageCodec, type Operation, readOperation } from "@rollcall/operations";
import { createPageTokens, definePolicies, type PolicyTable } from "@rollcall/rpc";
import {
  type Change,
  countAccessTokens,
  getAccessToken,
  listAccessTokens as listStored,
  lockAccessToken,
  revokeAccessToken as saveRevocation,
  type Tx,
  withSuggestion,
} from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { AdminServices } from "../admin-services.ts";
import { accessTokenToProto, identifiedCallerOf, revokerOf, roleToProto } from "./convert.ts";
import { createAccessToken } from "./create-access-token.ts";

/** Who can call each access method, its deadline, and whether clients can retry it automatically. */
export const ACCESS_POLICIES: PolicyTable = definePolicies(AccessService, {
  createAccessToken: { caller: "admin", deadlineMs: 10_000, idempotent: false },
  listAccessTokens: { caller: "admin", deadlineMs: 10_000, idempotent: true },
  // Allow viewers, because any token can revoke itself. The handler requires admin to revoke another token.
  revokeAccessToken: { caller: "viewer", deadlineMs: 10_000, idempotent: false },
  whoAmI: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  getLoginOptions: { caller: "anyone", deadlineMs: 5_000, idempotent: true },
});

/** Register the access methods. */
export function routeAccess(router: ConnectRouter, services: AdminServices): void {
  router.service(AccessService, {
    createAccessToken: createAccessToken(services),
    listAccessTokens: listAccessTokens(services),
    revokeAccessToken: revokeAccessToken(services),
    whoAmI: whoAmI(services),
    getLoginOptions: getLoginOptions(services),
  });
}

/** Return how to log in without an access token. */
function getLoginOptions({
  loginIssuers = [],
}: AdminServices): MethodImpl<typeof AccessService.method.getLoginOptions> {
  const answer = create(GetLoginOptionsResponseSchema, {
    issuers: loginIssuers.map((issuer) => ({ ...issuer })),
  });
  return async () => answer;
}

/** Return the identity of the caller. */
function whoAmI({ store }: AdminServices): MethodImpl<typeof AccessService.method.whoAmI> {
  return async (_request, context) => {
    const caller = identifiedCallerOf(context);
    const { expiresAtMs } = caller;
    return create(WhoAmIResponseSchema, {
      actor: actorOf(caller),
      role: roleToProto(caller.role),
      clusterId: store.clusterId(),
      ...(expiresAtMs === undefined ? {} : { expireTime: timestampFromMs(expiresAtMs) }),
      credential: await credentialOf(caller, store),
      sessionId: caller.session ?? "",
    });
  };
}

async function credentialOf(
  caller: IdentifiedCaller,
  store: AdminServices["store"],
): Promise<WhoAmIResponse["credential"]> {
  if (caller.kind === "person") {
    const { issuer, subject, groupsLeftOut = "" } = caller;
    return { case: "person", value: create(PersonSchema, { issuer, subject, groupsLeftOut }) };
  }
  const token = await getAccessToken(store.db, caller.id);
  if (token === null) throw new Error(`access token ${caller.id} was deleted`);
  return { case: "accessToken", value: accessTokenToProto(token) };
}

const DEFAULT_PAGE_SIZE = 100;

/** Return a page of access tokens. */
function listAccessTokens({ store }: AdminServices): MethodImpl<typeof AccessService.method.listAccessTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken, showEnded }, context) => {
    const listing = `ListAccessTokens ${showEnded}`;
    // The cast is safe, because the page token's MAC proves that this method created the cursor.
    const cursor = pageTokens.open(listing, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const rows = readRows({
      limit,
      from: BigInt(cursor ?? 0),
      read: (after, count) => listStored(store.db, { after, limit: count, showEnded }),
      cursorOf: ({ number }) => number,
    });
    const page = await readPage(context, {
      ...{ rows, limit, item: AccessTokenSchema, toMessage: accessTokenToProto },
    });
    return page.answer(ListAccessTokensResponseSchema, "accessTokens", {
      nextPageToken: page.next === null ? "" : pageTokens.seal(listing, `${page.next.number}`),
    });
  };
}

/** Revoke an access token permanently. */
function revokeAccessToken(services: AdminServices): MethodImpl<typeof AccessService.method.revokeAccessToken> {
  const method = AccessService.method.revokeAccessToken;
  const options = { codec: messageCodec(RevokeAccessTokenResponseSchema) };
  return async (request, context) => {
    const { id } = request;
    const by = revokerOf(identifiedCallerOf(context));
    // Check the caller's right before the lookup, because a caller without the right must not learn which ids
    // exist.
    const anonymousClients = anonymousTokenRefusal(id, by);
    if (anonymousClients !== null) throw refusalError(anonymousClients, id);
    const operation = readOperation(services, method, request, context);
    const answer = await commit(services, operation, options, (tx) => revoke(tx, operation, id, by));
    if (answer.adminTokensLeft === 0) {
      services.log.warn({ actor: operation.by.actor, token: id }, "no admin token is left");
    }
    return answer;
  };
}

async function revoke(
  tx: Tx,
  operation: Operation,
  id: string,
  by: Revoker,
): Promise<Change<RevokeAccessTokenResponse>> {
  const token = await lockAccessToken(tx, id);
  if (token === null) throw await accessTokenNotFound(tx, id, by);
  const decided = endAccessToken(token, { ...by, ...operation.by });
  if (!decided.ok) throw refusalError(decided.refusal, id);
  for (const revocation of decided.effects) await saveRevocation(tx, id, revocation);
  const result = create(RevokeAccessTokenResponseSchema, {
    accessToken: accessTokenToProto((await lockAccessToken(tx, id)) ?? token),
    adminTokensLeft: await countAccessTokens(tx, "admin"),
  });
  return { result, events: decided.events, audit: [auditOf(operation, id)] };
}

/** The error for an unknown token id. It suggests a similar id only to admins, who can list all tokens. */
async function accessTokenNotFound(tx: Tx, id: string, { role }: Revoker): Promise<Error> {
  const message = `no access token has the id ${id}`;
  const missing = { reason: "ACCESS_TOKEN_NOT_FOUND", message, metadata: { token: id } } as const;
  const mayList = role === "admin";
  return refusalError(mayList ? await withSuggestion(tx, "accessToken", id, missing) : missing, id);
}
