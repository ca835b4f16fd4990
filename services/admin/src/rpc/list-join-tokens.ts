import type { MethodImpl } from "@connectrpc/connect";
import {
  JoinTokenSchema,
  type JoinTokenService,
  ListJoinTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { createPageTokens } from "@rollcall/rpc";
import { type JoinToken, listJoinTokens as listStored } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import type { AdminDeps } from "../deps.ts";
import { joinTokenToProto } from "../join-tokens/convert.ts";

const DEFAULT_PAGE_SIZE = 100;
const LISTING = "ListJoinTokens";

/** Answer a page of join tokens, the newest first. */
export function listJoinTokens({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof JoinTokenService.method.listJoinTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken }, context) => {
    // The MAC says that the cursor was made below.
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
