import { refuse } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import { decodeJwt, jwtVerify } from "jose";
import type { Authenticator, Caller } from "../caller.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";
import { type Claims, roleOfClaims, subjectOfClaims } from "./role-of-claims.ts";

/** What tokens of issuers are checked with. */
export interface OidcAuthenticatorOptions {
  readonly issuers: readonly OidcIssuer[];
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly log: Logger;
}

/** None that uses a shared secret, and not "none": with either, a public key would be enough to make tokens. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** How much the clocks of issuer and server may differ. */
const CLOCK_TOLERANCE_S = 30;
const JWT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

interface KnownIssuer {
  readonly issuer: OidcIssuer;
  readonly keys: IssuerKeys;
}

/**
 * Find callers by tokens of issuers: null for what is no token of theirs or is not signed by them. It throws
 * TOKEN_EXPIRED, TOKEN_INVALID (of the issuer, but not for here), ROLE_TOO_LOW (no role) and ISSUER_UNAVAILABLE.
 * Nothing is fetched before the first token comes.
 */
export function createOidcAuthenticator(options: OidcAuthenticatorOptions): Authenticator {
  const { clock, log } = options;
  const known = new Map<string, KnownIssuer>();
  for (const issuer of options.issuers) {
    known.set(issuer.issuer, { issuer, keys: new IssuerKeys({ issuer, clock, log }) });
  }
  return async (bearer) => {
    const found = known.get(JWT.test(bearer) ? (issuerIn(bearer) ?? "") : "");
    if (found === undefined) return null;
    const claims = await verify(bearer, found, clock.wallMs());
    return claims === null ? null : callerOf(claims, found.issuer);
  };
}

/** The issuer that a token names, which only says by whose keys to check it. */
function issuerIn(bearer: string): string | undefined {
  try {
    return decodeJwt(bearer).iss;
  } catch {
    // Three texts with dots between that are no token.
    return undefined;
  }
}

async function verify(bearer: string, { issuer, keys }: KnownIssuer, wallMs: number): Promise<Claims | null> {
  try {
    const { payload } = await jwtVerify(bearer, (header) => keys.find(header), {
      issuer: issuer.issuer,
      audience: issuer.audience,
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      currentDate: new Date(wallMs),
      requiredClaims: ["exp"],
    });
    return payload;
  } catch (error) {
    // The signature is checked before the claims: only the holder of a token that the issuer made may learn what is
    // wrong with them.
    switch (codeOf(error)) {
      case "ERR_JWT_EXPIRED":
        throw refuse("TOKEN_EXPIRED", `the token of ${issuer.issuer} has expired: log in again`, {
          metadata: { issuer: issuer.issuer },
        });
      case "ERR_JWT_CLAIM_VALIDATION_FAILED":
        throw tokenInvalid(issuer, Object(error).message);
      default:
        if (codeOf(error).startsWith("ERR_J")) return null;
        throw error;
    }
  }
}

function callerOf(claims: Claims, issuer: OidcIssuer): Caller {
  const who = subjectOfClaims(claims, issuer);
  if (who === null) {
    throw tokenInvalid(issuer, `the claim ${issuer.subjectClaim} names no subject`);
  }
  const { name, subject } = who;
  const role = roleOfClaims(claims, name, issuer);
  if (role === null) {
    const message =
      `user:${subject} has no role here: neither the claim ${issuer.roleClaim} of the token nor ` +
      "OIDC.SubjectRoles gives one";
    throw refuse("ROLE_TOO_LOW", message, { metadata: { role: "none", subject } });
  }
  const expiresAtMs = Number(claims.exp) * 1000;
  return { kind: "person", issuer: issuer.issuer, subject, role, expiresAtMs };
}

function tokenInvalid({ issuer }: OidcIssuer, why: string): Error {
  return refuse("TOKEN_INVALID", `the token of ${issuer} is not one for here: ${why}`, {
    metadata: { issuer, why },
  });
}

function codeOf(error: unknown): string {
  const { code } = Object(error) as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
