import type { ConnectRouter } from "@connectrpc/connect";
import { JoinTokenService } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import type { AdminDeps } from "../deps.ts";
import { createJoinToken } from "../rpc/create-join-token.ts";
import { getJoinToken } from "../rpc/get-join-token.ts";
import { listJoinTokens } from "../rpc/list-join-tokens.ts";
import { revokeJoinToken } from "../rpc/revoke-join-token.ts";

/**
 * Who may call each method of join tokens. Whoever may approve nodes may make a token that approves them in advance.
 */
export const JOIN_TOKEN_POLICIES: PolicyTable = definePolicies(JoinTokenService, {
  createJoinToken: { caller: "operator", deadlineMs: 10_000, idempotent: false },
  getJoinToken: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  listJoinTokens: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
  revokeJoinToken: { caller: "operator", deadlineMs: 10_000, idempotent: false },
});

/** Serve join tokens: one line a method. */
export function routeJoinTokens(router: ConnectRouter, deps: AdminDeps): void {
  router.service(JoinTokenService, {
    createJoinToken: createJoinToken(deps),
    getJoinToken: getJoinToken(deps),
    listJoinTokens: listJoinTokens(deps),
    revokeJoinToken: revokeJoinToken(deps),
  });
}
