import type { SignInResponse } from "@rollcall/api/rollcall/console/v1/console_pb";
import { keepProof } from "./proof.ts";

/** Keep what sign-in answered, and load the page again as who it is now: nothing of an earlier reader stays. */
export function enterWith({ proof }: SignInResponse): void {
  keepProof(proof);
  const { pathname, search } = window.location;
  window.location.replace(pathname.startsWith("/sign-in") ? "/" : pathname + search);
}
