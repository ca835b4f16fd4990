import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import { GetJoinTokenResponseSchema, type JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { getJoinToken as getStored, lastUsesOf } from "@rollcall/store";
import type { AdminDeps } from "../deps.ts";
import { joinTokenNotFound, joinTokenToProto, joinTokenUseToProto } from "../join-tokens/convert.ts";

const MOST_USES = 100;

/** Answer one join token, and whom it let in last. */
export function getJoinToken({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof JoinTokenService.method.getJoinToken> {
  return async ({ id }) => {
    const token = await getStored(store.db, id);
    if (token === null) throw joinTokenNotFound(id);
    const uses = await lastUsesOf(store.db, id, MOST_USES);
    return create(GetJoinTokenResponseSchema, {
      token: joinTokenToProto(token),
      lastUses: uses.map(joinTokenUseToProto),
    });
  };
}
