import { create } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CreateJoinTokenRequest,
  JoinTokenSchema,
  JoinTokenState,
  JoinTokenUseSchema,
  type JoinToken as ProtoToken,
  type JoinTokenUse as ProtoUse,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { checkAgentLabels, GROUP_LABEL, isLabelValue, joinTokenState } from "@rollcall/domain";
import { refusalError, refuseFields } from "@rollcall/errors";
import { type Db, type JoinToken, type NewJoinToken, type PastUse, withSuggestion } from "@rollcall/store";

/** The properties of a new token in a request. */
export type TokenTerms = Omit<NewJoinToken, "id" | "hash" | "createdBy">;

const DEFAULT_MAX_USES = 1;
const DEFAULT_TTL_MS = 24 * 3_600_000;

/** Parse the properties of a new token. Throws INVALID_LABEL with all violations. */
export function parseTerms(request: CreateJoinTokenRequest): TokenTerms {
  const { description, nodeNamePattern, preauthorized, ephemeral } = request;
  return {
    ...{ description, nodeNamePattern, preauthorized, ephemeral },
    maxUses: parseMaxUses(request),
    ttlMs: parseTtl(request),
    labels: parseLabels(request),
  };
}

function parseMaxUses({ useLimit }: CreateJoinTokenRequest): number | null {
  switch (useLimit.case) {
    case "maxUses":
      return useLimit.value;
    case "unlimitedUses":
      return null;
    default:
      return DEFAULT_MAX_USES;
  }
}

function parseTtl({ lifetime }: CreateJoinTokenRequest): number | null {
  switch (lifetime.case) {
    case "ttl":
      return Math.round(durationMs(lifetime.value));
    case "neverExpires":
      return null;
    default:
      return DEFAULT_TTL_MS;
  }
}

function parseLabels({ labels, group }: CreateJoinTokenRequest): Readonly<Record<string, string>> {
  const violations = checkAgentLabels(labels);
  if (!isLabelValue(group)) {
    const description = "must be empty or 1 to 63 characters of [A-Za-z0-9._-], like a label value";
    violations.push({ field: "group", description });
  }
  if (violations.length > 0) throw refuseFields("INVALID_LABEL", violations);
  return group === "" ? labels : { ...labels, [GROUP_LABEL]: group };
}

const STATES = {
  ACTIVE: JoinTokenState.ACTIVE,
  EXPIRED: JoinTokenState.EXPIRED,
  REVOKED: JoinTokenState.REVOKED,
  USED_UP: JoinTokenState.USED_UP,
} as const;

/** A token as the API shows it. */
export function joinTokenToProto(token: JoinToken): ProtoToken {
  const { lastUsedAtMs, expiresAtMs, revocation } = token;
  return create(JoinTokenSchema, {
    id: token.id,
    description: token.description,
    state: STATES[joinTokenState(token)],
    maxUses: token.maxUses ?? 0,
    uses: token.uses,
    nodeNamePattern: token.nodeNamePattern,
    labels: { ...token.labels },
    preauthorized: token.preauthorized,
    ephemeral: token.ephemeral,
    createTime: timestampFromMs(token.createdAtMs),
    creator: token.createdBy,
    ...(lastUsedAtMs === null ? {} : { lastUseTime: timestampFromMs(lastUsedAtMs) }),
    ...(expiresAtMs === null ? {} : { expireTime: timestampFromMs(expiresAtMs) }),
    ...(revocation === null
      ? {}
      : {
          revocation: {
            time: timestampFromMs(revocation.atMs),
            actor: revocation.actor,
            reason: revocation.reason,
          },
        }),
  });
}

/** A use as the API shows it. */
export function joinTokenUseToProto({ nodeId, fingerprint, atMs }: PastUse): ProtoUse {
  return create(JoinTokenUseSchema, {
    nodeId,
    keyFingerprint: fingerprint,
    time: timestampFromMs(atMs),
  });
}

/** The error for an unknown join token id, with the most likely intended token. */
export async function joinTokenNotFound(db: Db, id: string): Promise<Error> {
  const message = `join token ${id} not found`;
  const missing = { reason: "JOIN_TOKEN_NOT_FOUND", message, metadata: { joinToken: id } } as const;
  return refusalError(await withSuggestion(db, "joinToken", id, missing), id);
}
