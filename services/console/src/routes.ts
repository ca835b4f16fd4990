import type { ConnectRouter } from "@connectrpc/connect";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import { beginOidcSignIn, type SignInParts, signIn } from "./sign-in/sign-in.ts";
import { createSignInCode, getSignInCode } from "./sign-in/sign-in-codes.ts";
import { signOut } from "./sign-in/sign-out.ts";

/** What the console serves, besides pages. */
export const SERVICES = [ConsoleService];

/** Who may call each method, for how long, and whether a client may repeat it by itself. */
export const POLICIES: PolicyTable = definePolicies(ConsoleService, {
  createSignInCode: { caller: "viewer", deadlineMs: 10_000, idempotent: false },
  getSignInCode: { caller: "anyone", deadlineMs: 10_000, idempotent: true },
  // The issuer has to answer, too.
  beginOidcSignIn: { caller: "anyone", deadlineMs: 15_000, idempotent: true },
  signIn: { caller: "anyone", deadlineMs: 15_000, idempotent: false },
  signOut: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
});

/** Serve them all. */
export function createRoutes(parts: SignInParts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(ConsoleService, {
      createSignInCode: createSignInCode(parts),
      getSignInCode: getSignInCode(parts),
      beginOidcSignIn: beginOidcSignIn(parts),
      signIn: signIn(parts),
      signOut: signOut(parts),
    });
  };
}
