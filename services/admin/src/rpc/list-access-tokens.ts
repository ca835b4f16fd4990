import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type AccessService,
  ListAccessTokensResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/access_pb";
import { createPageTokens } from "@rollcall/runtime";
import { listAccessTokens as listStored } from "@rollcall/store";
import { accessTokenToProto } from "../access/convert.ts";
import type { AdminDeps } from "../deps.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of access tokens. */
export function listAccessTokens({
  store,
}: Pick<AdminDeps, "store">): MethodImpl<typeof AccessService.method.listAccessTokens> {
  const pageTokens = createPageTokens(store.clusterSecret());
  return async ({ pageSize, pageToken, showEnded }) => {
    const listing = `ListAccessTokens ${showEnded}`;
    // The MAC says that the cursor was made below.
    const after = pageTokens.open(listing, pageToken) as string | null;
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const tokens = await listStored(store.db, {
      after: BigInt(after ?? 0),
      // One more than asked for tells whether there is another page.
      limit: limit + 1,
      showEnded,
    });
    const page = tokens.slice(0, limit);
    const last = page.at(-1);
    return create(ListAccessTokensResponseSchema, {
      accessTokens: page.map(accessTokenToProto),
      nextPageToken:
        last === undefined || tokens.length <= limit
          ? ""
          : pageTokens.seal(listing, `${last.number}`),
    });
  };
}
