import type { Authenticator } from "@rollcall/identity";
import { type FailedAttempts, tokenAttempt } from "../limits/failed-attempts.ts";
import { type Identity, identifyCaller } from "./find-caller.ts";

/**
 * Identifies a caller by the authorization header, which is null if there is none. Never
 * rejects.
 */
export type Identify = (authorization: string | null, peer: string) => Promise<Identity>;

/** Create the function that identifies callers before their requests are decoded. */
export function createIdentify(options: {
  readonly authenticate: Authenticator;
  /** Limits failed attempts; absent for no limit. */
  readonly failures?: FailedAttempts | undefined;
}): Identify {
  const { authenticate, failures } = options;
  return async (authorization, peer) => {
    try {
      if (authorization !== null) failures?.check(tokenAttempt(peer, authorization));
      return { ok: true, caller: await identifyCaller(authorization, authenticate) };
    } catch (error) {
      return { ok: false, error };
    }
  };
}
