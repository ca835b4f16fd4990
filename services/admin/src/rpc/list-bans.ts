import { create } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  type AdminService,
  ListBansResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { refuse } from "@rollcall/runtime";
import { listBans as listRecords } from "@rollcall/store";
import { banToProto } from "../convert.ts";
import type { AdminDeps } from "../deps.ts";

const DEFAULT_PAGE_SIZE = 100;

/** Answer a page of the bans there are, the newest first. */
export function listBans({ store }: AdminDeps): MethodImpl<typeof AdminService.method.listBans> {
  return async ({ pageSize, pageToken }) => {
    const limit = pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize;
    const before = openPageToken(pageToken);
    const bans = await listRecords(store.db, { limit: limit + 1, before });
    const shown = bans.slice(0, limit);
    const last = shown.at(-1);
    return create(ListBansResponseSchema, {
      bans: shown.map(banToProto),
      nextPageToken: bans.length > limit && last !== undefined ? `${TOKEN_START}${last.id}` : "",
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
