import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@rollcall/api/google/rpc/error_details_pb";
import {
  type CreateJoinTokenRequest,
  type JoinToken,
  JoinTokenSchema,
  JoinTokenService,
  JoinTokenState,
  type JoinTokenUse,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { NOW_MS } from "./sample-nodes.ts";

const DAY_MS = 86_400_000;

/** The join tokens of a fake control plane. Ids are "0000000000a1" and so on; texts are "rcj_00000000_<id>_secret". */
export class FakeJoinTokens {
  readonly tokens: JoinToken[] = [];
  readonly uses: JoinTokenUse[] = [];

  clear(): void {
    this.tokens.length = 0;
    this.uses.length = 0;
  }

  /** Serve them; `enter` notes and authorizes each call. */
  route(router: ConnectRouter, enter: (method: string, detail: string, context: HandlerContext) => void): void {
    router.service(JoinTokenService, {
      createJoinToken: (request, context) => {
        const { $typeName, ...asked } = request;
        enter("CreateJoinToken", JSON.stringify(asked, bigintsAsNumbers), context);
        const token = this.#make(request);
        this.tokens.unshift(token);
        return { token, text: `rcj_00000000_${token.id}_secret` };
      },
      getJoinToken: ({ id }, context) => {
        enter("GetJoinToken", id, context);
        return { token: this.#find(id), lastUses: this.uses };
      },
      listJoinTokens: ({ pageToken }, context) => {
        enter("ListJoinTokens", pageToken, context);
        // Pages of two, so that whoever stops at the first is found out.
        const start = Number(pageToken);
        const end = start + 2;
        const more = end < this.tokens.length;
        return { tokens: this.tokens.slice(start, end), nextPageToken: more ? `${end}` : "" };
      },
      revokeJoinToken: ({ id, reason, requestId }, context) => {
        enter("RevokeJoinToken", `${id} ${reason} ${requestId}`.trimEnd(), context);
        const token = this.#find(id);
        token.state = JoinTokenState.REVOKED;
        return { token };
      },
    });
  }

  #make(request: CreateJoinTokenRequest): JoinToken {
    const { useLimit, lifetime, description, nodeNamePattern, preauthorized, ephemeral } = request;
    const ttlMs = lifetime.case === "ttl" ? durationMs(lifetime.value) : DAY_MS;
    return create(JoinTokenSchema, {
      ...{ description, nodeNamePattern, preauthorized, ephemeral },
      id: (0xa1 + this.tokens.length).toString(16).padStart(12, "0"),
      state: JoinTokenState.ACTIVE,
      maxUses: useLimit.case === "maxUses" ? useLimit.value : Number(useLimit.case === undefined),
      labels: request.labels,
      createTime: timestampFromMs(NOW_MS),
      creator: "token:admin",
      ...(lifetime.case === "neverExpires" ? {} : { expireTime: timestampFromMs(NOW_MS + ttlMs) }),
    });
  }

  #find(id: string): JoinToken {
    const token = this.tokens.find((it) => it.id === id);
    if (token !== undefined) return token;
    const value = { reason: "JOIN_TOKEN_NOT_FOUND", domain: "rollcall.io" };
    throw new ConnectError(`join token ${id} not found`, Code.NotFound, undefined, [{ desc: ErrorInfoSchema, value }]);
  }
}

function bigintsAsNumbers(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}
