import type { MethodImpl } from "@connectrpc/connect";
import {
  type AccessService,
  AccessTokenSchema,
  ListAccessTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { createPageTokens } from "@rollcall/rpc";
import { listAccessTokens as listStored } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import { accessTokenToProto } from "../access/convert.ts";
import type { AdminDeps } from "../deps.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of access tokens. */
export function listAccessTokens({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AccessService.method.listAccessTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken, showEnded }, context) => {
    const listing = `ListAccessTokens ${showEnded}`;
    // The MAC says that the cursor was made below.
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
