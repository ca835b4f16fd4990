import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type JoinTokenService,
  ListJoinTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { createPageTokens } from "@rollcall/runtime";
import { listJoinTokens as listStored } from "@rollcall/store";
import type { AdminDeps } from "../deps.ts";
import { joinTokenToProto } from "../join-tokens/convert.ts";

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListJoinTokens";

/** Answer a page of join tokens, the newest first. */
export function listJoinTokens({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof JoinTokenService.method.listJoinTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }) => {
    // The MAC says that the cursor was made below.
    const cursor = pageTokens.open(LISTING, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const tokens = await listStored(store.db, {
      before: cursor === null ? null : BigInt(cursor),
      // One more than asked for tells whether there is another page.
      limit: limit + 1,
    });
    const page = tokens.slice(0, limit);
    const last = page.at(-1);
    const isLast = last === undefined || tokens.length <= limit;
    return create(ListJoinTokensResponseSchema, {
      tokens: page.map(joinTokenToProto),
      nextPageToken: isLast ? "" : pageTokens.seal(LISTING, `${last.number}`),
    });
  };
}
