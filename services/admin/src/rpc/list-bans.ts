import type { MethodImpl } from "@connectrpc/connect";
import { type AdminService, BanSchema, ListBansResponseSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { refuse } from "@rollcall/errors";
import { type Ban, listBans as listRecords } from "@rollcall/store";
import { readPage, readRows } from "@rollcall/wire";
import { banToProto } from "../convert.ts";
import type { AdminDeps } from "../deps.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of the bans there are, the newest first. */
export function listBans({ store }: AdminDeps): MethodImpl<typeof AdminService.method.listBans> {
  return async ({ pageSize, pageToken }, context) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const rows = readRows<Ban, bigint | null>({
      limit,
      from: openPageToken(pageToken),
      read: (before, count) => listRecords(store.db, { limit: count, before }),
      cursorOf: ({ id }) => id,
    });
    const page = await readPage(context, { rows, limit, item: BanSchema, toMessage: banToProto });
    return page.answer(ListBansResponseSchema, "bans", {
      nextPageToken: page.next === null ? "" : `${TOKEN_START}${page.next.id}`,
    });
  };
}

const TOKEN_START = "bans-before-";
const TOKEN = /^bans-before-([0-9]{1,18})$/;

/** Before which ban a page begins; null for the first. Throws INVALID_PAGE_TOKEN. */
function openPageToken(token: string): bigint | null {
  if (token === "") return null;
  const id = TOKEN.exec(token)?.[1];
  if (id !== undefined) return BigInt(id);
  const message = "the page token was not made by this method; begin again without one";
  throw refuse("INVALID_PAGE_TOKEN", message, {
    violations: [{ field: "page_token", description: message }],
  });
}
