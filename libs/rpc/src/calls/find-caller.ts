import { refuse } from "@rollcall/errors";
import {
  ANONYMOUS,
  type Authenticator,
  bearerOf,
  type Caller,
  type KnownCaller,
  LONGEST_TOKEN,
  type Role,
  roleSuffices,
} from "@rollcall/identity";
import type { MethodCaller } from "./policy.ts";

const SCHEME_LENGTH = "Bearer ".length;

/** Who makes a call, or why that is not known. */
export type Identity =
  | { readonly ok: true; readonly caller: KnownCaller }
  | { readonly ok: false; readonly error: unknown };

/** Whether a method of this row asks for a token. */
export function needsRole(needs: MethodCaller): needs is Role {
  return needs !== "anyone" && needs !== "node" && needs !== "replica";
}

/**
 * Find who calls a method by the call's authorization header, null when it has none.
 * Throws TOKEN_MISSING, TOKEN_INVALID, ROLE_TOO_LOW, or what the authenticator throws.
 *
 * @param onFound called with a caller whose identity is known, before it is judged whether the role suffices.
 */
export async function findCaller(
  needs: MethodCaller,
  authorization: string | null,
  authenticate: Authenticator,
  onFound: (caller: Caller) => void = () => {},
): Promise<Caller> {
  if (!needsRole(needs)) return ANONYMOUS;
  const caller = await identifyCaller(authorization, authenticate);
  onFound(caller);
  checkRole(caller, needs);
  return caller;
}

/** Find who calls, whatever the role. Throws TOKEN_MISSING, TOKEN_INVALID, or what the authenticator throws. */
export async function identifyCaller(authorization: string | null, authenticate: Authenticator): Promise<KnownCaller> {
  if (authorization === null) {
    throw refuse("TOKEN_MISSING", "this method needs an access token: send it as authorization: Bearer <token>");
  }
  if (authorization.length > LONGEST_TOKEN + SCHEME_LENGTH) throw tokenTooLong();
  const bearer = bearerOf(authorization);
  const caller = bearer === null ? null : await authenticate(bearer);
  if (caller === null || caller.kind === "anonymous") {
    throw refuse("TOKEN_INVALID", "the access token is unknown or malformed");
  }
  return caller;
}

/** Check that a caller has the role that a method needs. Throws ROLE_TOO_LOW. */
export function checkRole(caller: KnownCaller, needs: Role): void {
  if (roleSuffices(caller.role, needs)) return;
  throw refuse("ROLE_TOO_LOW", `this method needs the role ${needs}, the token has ${caller.role}`, {
    metadata: { required: needs, role: caller.role },
  });
}

/** The refusal of a token that has more characters than any that is taken. */
function tokenTooLong() {
  const message =
    `the access token is too long, ${LONGEST_TOKEN} characters are the most; an issuer's token grows with the ` +
    "groups that it names: let the issuer write only those that OIDC.RoleMap has";
  return refuse("TOKEN_INVALID", message, { metadata: { longest: String(LONGEST_TOKEN) } });
}
