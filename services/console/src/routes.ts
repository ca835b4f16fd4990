import type { ConnectRouter } from "@connectrpc/connect";
import { ConsoleService } from "@rollcall/api/rollcall/console/v1/console_pb";
import { definePolicies, type PolicyTable } from "@rollcall/rpc";
import { beginOidcSignIn, type SignInParts, signIn } from "./sign-in/sign-in.ts";
import { createSignInCode, getSignInCode } from "./sign-in/sign-in-codes.ts";
import { signOut } from "./sign-in/sign-out.ts";

/** The services that the console serves. */
export const SERVICES = [ConsoleService];

/**
 * Who can call each method, its deadline, and whether clients can retry it automatically.
 */
export const POLICIES: PolicyTable = definePolicies(ConsoleService, {
  createSignInCode: { caller: "viewer", deadlineMs: 10_000, idempotent: false },
  getSignInCode: { caller: "anyone", deadlineMs: 10_000, idempotent: true },
  // Set a longer deadline, because the issuer also has to respond.
  beginOidcSignIn: { caller: "anyone", deadlineMs: 15_000, idempotent: true },
  signIn: { caller: "anyone", deadlineMs: 15_000, idempotent: false },
  signOut: { caller: "viewer", deadlineMs: 10_000, idempotent: true },
});

/** Returns a function that registers the console's methods. */
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
