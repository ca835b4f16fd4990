import type { ConnectRouter } from "@connectrpc/connect";
import { AccessService } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { AdminDeps } from "../deps.ts";
import { createAccessToken } from "../rpc/create-access-token.ts";
import { getLoginOptions } from "../rpc/get-login-options.ts";
import { listAccessTokens } from "../rpc/list-access-tokens.ts";
import { revokeAccessToken } from "../rpc/revoke-access-token.ts";
import { whoAmI } from "../rpc/who-am-i.ts";

/** Who may call each method of access, for how long, and whether a client may repeat it by itself. */
export const ACCESS_POLICIES: PolicyTable = definePolicies(AccessService, {
  createAccessToken: { caller: "admin", deadlineMs: 10_000, idempotent: false },
  listAccessTokens: { caller: "admin", deadlineMs: 10_000, idempotent: true },
  // Any token may revoke itself; the handler asks for admin to revoke another.
  revokeAccessToken: { caller: "viewer", deadlineMs: 10_000, idempotent: false },
  whoAmI: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  getLoginOptions: { caller: "anyone", deadlineMs: 5_000, idempotent: true },
});

/** Serve access: one line a method. */
export function routeAccess(router: ConnectRouter, deps: AdminDeps): void {
  router.service(AccessService, {
    createAccessToken: createAccessToken(deps),
    listAccessTokens: listAccessTokens(deps),
    revokeAccessToken: revokeAccessToken(deps),
    whoAmI: whoAmI(deps),
    getLoginOptions: getLoginOptions(deps),
  });
}
