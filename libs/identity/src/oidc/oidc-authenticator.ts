import { refuse } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import type { Authenticator, Caller } from "../caller.ts";
import { groupsOverage, unverifiedEmail } from "./claim-rules.ts";
import type { Claims } from "./claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";
import { roleOfClaims, subjectOfClaims } from "./role-of-claims.ts";
import { issuerIn, verifyToken } from "./verify-token.ts";

export interface OidcAuthenticatorOptions {
  readonly issuers: readonly OidcIssuer[];
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly log: Logger;
}

type Person = Extract<Caller, { readonly kind: "person" }>;

interface ConfiguredIssuer {
  readonly issuer: OidcIssuer;
  readonly keys: IssuerKeys;
}

/**
 * Authenticate callers by tokens of issuers. Returns null for a token that names no known issuer, or that the issuer
 * did not sign. Throws TOKEN_EXPIRED, TOKEN_INVALID (signed by the issuer, but not valid for Rollcall), ROLE_TOO_LOW
 * (no role) and ISSUER_UNAVAILABLE. Nothing is fetched before the first token arrives.
 */
export function createOidcAuthenticator(options: OidcAuthenticatorOptions): Authenticator {
  const { clock, log } = options;
  const known = new Map<string, ConfiguredIssuer>();
  for (const issuer of options.issuers) {
    known.set(issuer.issuer, { issuer, keys: new IssuerKeys({ issuer, clock, log }) });
  }
  const warned = new Map<string, number>();
  return async (bearer) => {
    const found = known.get(issuerIn(bearer) ?? "");
    if (found === undefined) return null;
    const claims = await verify(bearer, found, clock.wallMs());
    if (claims === null) return null;
    const caller = callerOf(claims, found.issuer);
    if (caller.groupsLeftOut !== undefined && isNews(warned, `${caller.issuer} ${caller.subject}`, clock.nowMs())) {
      const { issuer, subject, role, groupsLeftOut: claim } = caller;
      log.warn({ issuer, subject, role, claim }, "the issuer omitted the groups from a token, so they grant no role");
    }
    return caller;
  };
}

/**
 * Minimum time between two equal warnings about a person, in milliseconds. Every call carries the token, so without
 * this limit each call would log a warning.
 */
const SAID_FOR_MS = 3_600_000;
const MOST_SAID = 1_000;

function isNews(said: Map<string, number>, who: string, nowMs: number): boolean {
  const atMs = said.get(who);
  if (atMs !== undefined && nowMs - atMs < SAID_FOR_MS) return false;
  said.delete(who);
  said.set(who, nowMs);
  const [oldest] = said.keys();
  if (said.size > MOST_SAID && oldest !== undefined) said.delete(oldest);
  return true;
}

async function verify(bearer: string, { issuer, keys }: ConfiguredIssuer, wallMs: number): Promise<Claims | null> {
  const decision = await verifyToken(bearer, { ...issuer, keys }, wallMs);
  switch (decision.kind) {
    case "valid":
      return decision.claims;
    case "unsigned":
      return null;
    case "expired":
      throw refuse("TOKEN_EXPIRED", `the token of ${issuer.issuer} has expired: log in again`, {
        metadata: { issuer: issuer.issuer },
      });
    case "not-for-here":
      throw tokenInvalid(issuer, decision.why);
  }
}

function callerOf(claims: Claims, issuer: OidcIssuer): Person {
  const unverified = unverifiedEmail(claims, issuer);
  if (unverified !== null) throw emailUnverified(issuer, unverified);
  const who = subjectOfClaims(claims, issuer);
  if (who === null) {
    throw tokenInvalid(issuer, `the claim ${issuer.subjectClaim} names no subject`);
  }
  const { name, subject } = who;
  const role = roleOfClaims(claims, name, issuer);
  const overage = groupsOverage(claims, issuer.roleClaim);
  if (role === null) throw noRole(subject, issuer, overage);
  // Round down to whole milliseconds, because times in tokens can have fractional seconds.
  const expiresAtMs = Math.floor(Number(claims.exp) * 1000);
  const leftOut = overage === null ? {} : { groupsLeftOut: overage };
  return { kind: "person", issuer: issuer.issuer, subject, role, expiresAtMs, ...leftOut };
}

function noRole(subject: string, { roleClaim }: OidcIssuer, overage: string | null): Error {
  const why =
    overage === null
      ? `neither the token's claim ${roleClaim} nor OIDC.SubjectRoles grants one`
      : `the issuer omitted the claim ${roleClaim} from the token because there are too many groups (${overage}); ` +
        "configure it to include only groups assigned to the application, or use app roles with OIDC.RoleClaim: roles";
  const metadata = { role: "none", subject, ...(overage === null ? {} : { overage }) };
  return refuse("ROLE_TOO_LOW", `user:${subject} has no role here: ${why}`, { metadata });
}

function emailUnverified({ issuer }: OidcIssuer, claim: string): Error {
  const why =
    `the claim ${claim} is an e-mail address that the issuer has not verified (email_verified is not true); verify ` +
    "it there, or name a claim in OIDC.SubjectClaim and OIDC.RoleClaim that people cannot choose, such as sub";
  return refuse("TOKEN_INVALID", `the token of ${issuer} is not valid here: ${why}`, {
    metadata: { issuer, why, unverified: claim },
  });
}

function tokenInvalid({ issuer }: OidcIssuer, why: string): Error {
  return refuse("TOKEN_INVALID", `the token of ${issuer} is not valid here: ${why}`, {
    metadata: { issuer, why },
  });
}
