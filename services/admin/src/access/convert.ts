import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type AccessToken,
  AccessTokenKind,
  AccessTokenSchema,
  AccessTokenState,
  type CreateAccessTokenRequest,
  Role as ProtoRole,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { accessTokenState, type Revoker } from "@rollcall/domain";
import type { IdentifiedCaller, Role } from "@rollcall/identity";
import { callerOf } from "@rollcall/rpc";
import type { AccessToken as StoredToken } from "@rollcall/store";

const STATES = {
  VALID: AccessTokenState.VALID,
  EXPIRED: AccessTokenState.EXPIRED,
  REVOKED: AccessTokenState.REVOKED,
} as const;

/** A token as the API shows it. */
export function accessTokenToProto(token: StoredToken): AccessToken {
  const { id, name, role, createdBy, createdAtMs, expiresAtMs, lastUsedAtMs, revocation, session } = token;
  return create(AccessTokenSchema, {
    id,
    name,
    role: roleToProto(role),
    state: STATES[accessTokenState(token)],
    kind: session === null ? AccessTokenKind.TOKEN : AccessTokenKind.CONSOLE_SESSION,
    creator: createdBy,
    createTime: timestampFromMs(createdAtMs),
    ...(expiresAtMs === null ? {} : { expireTime: timestampFromMs(expiresAtMs) }),
    ...(lastUsedAtMs === null ? {} : { lastUseTime: timestampFromMs(lastUsedAtMs) }),
    ...(revocation === null ? {} : { revokeTime: timestampFromMs(revocation.atMs), revoker: revocation.actor }),
  });
}

/** The API's enum value of a role; UNSPECIFIED for a role that a newer version stored. */
export function roleToProto(role: string): ProtoRole {
  switch (role) {
    case "viewer":
      return ProtoRole.VIEWER;
    case "operator":
      return ProtoRole.OPERATOR;
    case "submitter":
      return ProtoRole.SUBMITTER;
    case "admin":
      return ProtoRole.ADMIN;
    default:
      return ProtoRole.UNSPECIFIED;
  }
}

/** The role in a request that has been validated. */
export function parseRole({ role }: Pick<CreateAccessTokenRequest, "role">): Role {
  switch (role) {
    case ProtoRole.VIEWER:
      return "viewer";
    case ProtoRole.OPERATOR:
      return "operator";
    case ProtoRole.SUBMITTER:
      return "submitter";
    case ProtoRole.ADMIN:
      return "admin";
    default:
      throw new Error(`validation accepted unknown role ${role}`);
  }
}

/** The lifetime of a token in milliseconds; null for an unlimited one. */
export function parseTtl({ ttl }: Pick<CreateAccessTokenRequest, "ttl">): number | null {
  return ttl === undefined ? null : durationMs(ttl);
}

/** The caller of a method that requires a role. */
export function identifiedCallerOf(context: Pick<HandlerContext, "values">): IdentifiedCaller {
  const caller = callerOf(context);
  if (caller.kind === "anonymous") throw new Error("a method that takes a role has no caller");
  return caller;
}

/** The caller as the revoker of a token. */
export function revokerOf(caller: IdentifiedCaller): Revoker {
  return {
    role: caller.role,
    tokenId: caller.kind === "token" ? caller.id : null,
    sessionId: caller.session ?? null,
  };
}
