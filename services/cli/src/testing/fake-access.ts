import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import {
  AccessService,
  type AccessToken,
  AccessTokenSchema,
  AccessTokenState,
  type LoginIssuer,
  Role,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { NOW_MS } from "./sample-nodes.ts";

/** The access tokens of a fake control plane. Ids are "0000000000a1" and so on; texts are "rc_<id>_secret". */
export class FakeAccess {
  readonly tokens: AccessToken[] = [];
  /** What GetLoginOptions answers. */
  issuers: readonly Omit<LoginIssuer, "$typeName">[] = [];
  /** What WhoAmI answers. */
  me = defaultCaller();
  /** How many admin tokens a revocation leaves. */
  adminTokensLeft = 1;

  clear(): void {
    this.tokens.length = 0;
    this.issuers = [];
    this.me = defaultCaller();
    this.adminTokensLeft = 1;
  }

  /** Serve them; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    router.service(AccessService, {
      createAccessToken: ({ name, role, ttl, requestId }, context) => {
        const ttlMs = ttl === undefined ? null : durationMs(ttl);
        enter("CreateAccessToken", `${name} ${role} ${ttlMs} ${requestId}`.trimEnd(), context);
        const token = create(AccessTokenSchema, {
          id: (0xa1 + this.tokens.length).toString(16).padStart(12, "0"),
          ...{ name, role, state: AccessTokenState.VALID, creator: "token:admin" },
          createTime: timestampFromMs(NOW_MS),
          ...(ttlMs === null ? {} : { expireTime: timestampFromMs(NOW_MS + ttlMs) }),
        });
        this.tokens.push(token);
        return { accessToken: token, text: `rc_${token.id}_secret` };
      },
      listAccessTokens: ({ pageToken, showEnded }, context) => {
        enter("ListAccessTokens", `${pageToken} ${showEnded}`.trim(), context);
        // Pages of two, so that whoever stops at the first is found out.
        const start = Number(pageToken);
        const more = start + 2 < this.tokens.length;
        const accessTokens = this.tokens.slice(start, start + 2);
        return { accessTokens, nextPageToken: more ? `${start + 2}` : "" };
      },
      revokeAccessToken: ({ id, reason, requestId }, context) => {
        enter("RevokeAccessToken", `${id} ${reason} ${requestId}`.trimEnd(), context);
        const token = this.tokens.find((it) => it.id === id);
        if (token === undefined) throw notFound(id);
        token.state = AccessTokenState.REVOKED;
        return { accessToken: token, adminTokensLeft: this.adminTokensLeft };
      },
      whoAmI: (_request, context) => {
        enter("WhoAmI", "", context);
        return this.me;
      },
      getLoginOptions: () => ({ issuers: this.issuers.map((issuer) => ({ ...issuer })) }),
    });
  }
}

function defaultCaller(): WhoAmIResponse {
  return create(WhoAmIResponseSchema, {
    actor: "token:0123456789ab",
    role: Role.OPERATOR,
    clusterId: "c1",
    credential: { case: "accessToken", value: { id: "0123456789ab", name: "alice's laptop" } },
  });
}

function notFound(id: string): ConnectError {
  const value = { reason: "ACCESS_TOKEN_NOT_FOUND", domain: "rollcall.io" };
  return new ConnectError(`no access token has the id ${id}`, Code.NotFound, undefined, [
    { desc: ErrorInfoSchema, value },
  ]);
}
