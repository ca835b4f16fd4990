import { refuse } from "@rollcall/errors";
import {
  ANONYMOUS,
  type Authenticator,
  bearerOf,
  type Caller,
  type IdentifiedCaller,
  LONGEST_TOKEN,
  type Role,
  roleSuffices,
} from "@rollcall/identity";
import type { MethodCaller } from "./policy.ts";

const SCHEME_LENGTH = "Bearer ".length;

/** The caller of a call, or the error that says why the caller is unknown. */
export type Identity =
  | { readonly ok: true; readonly caller: IdentifiedCaller }
  | { readonly ok: false; readonly error: unknown };

/** Whether a method with this policy requires a token. */
export function needsRole(needs: MethodCaller): needs is Role {
  return needs !== "anyone" && needs !== "node" && needs !== "replica";
}

/**
 * Find the caller of a method from the call's authorization header, and check the caller's role. Throws
 * TOKEN_MISSING, TOKEN_INVALID, ROLE_TOO_LOW, or the authenticator's error.
 *
 * @param authorization null if the call has no such header.
 * @param onFound called with an identified caller, before its role is checked.
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

/** Find the caller, whatever its role. Throws TOKEN_MISSING, TOKEN_INVALID, or the authenticator's error. */
export async function identifyCaller(
  authorization: string | null,
  authenticate: Authenticator,
): Promise<IdentifiedCaller> {
  if (authorization === null) {
    throw refuse("TOKEN_MISSING", "an access token is required: send it as authorization: Bearer <token>");
  }
  if (authorization.length > LONGEST_TOKEN + SCHEME_LENGTH) throw tokenTooLong();
  const bearer = bearerOf(authorization);
  const caller = bearer === null ? null : await authenticate(bearer);
  if (caller === null || caller.kind === "anonymous") {
    throw refuse("TOKEN_INVALID", "the access token is unknown or malformed");
  }
  return caller;
}

/** Check that a caller has the role that a method requires. Throws ROLE_TOO_LOW. */
export function checkRole(caller: IdentifiedCaller, needs: Role): void {
  if (roleSuffices(caller.role, needs)) return;
  throw refuse("ROLE_TOO_LOW", `this method requires the role ${needs}, but the token has ${caller.role}`, {
    metadata: { required: needs, role: caller.role },
  });
}

/** The error for a token that is longer than any valid token. */
function tokenTooLong() {
  const message =
    `the access token is longer than the limit of ${LONGEST_TOKEN} characters; an issuer's token grows with the ` +
    "groups that it names: have the issuer include only the groups in OIDC.RoleMap";
  return refuse("TOKEN_INVALID", message, { metadata: { longest: String(LONGEST_TOKEN) } });
}
