import type { Authenticator } from "@rollcall/identity";
import { type FailedAttempts, tokenAttempt } from "../limits/failed-attempts.ts";
import { type Identity, identifyCaller } from "./find-caller.ts";

/** Identifies a caller by the authorization header, null when there is none. Never rejects. */
export type Identify = (authorization: string | null, peer: string) => Promise<Identity>;

/** Make what identifies callers before anything of their requests is decoded. */
export function createIdentify(options: {
  readonly authenticate: Authenticator;
  /** Absent where failed attempts are not limited. */
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
