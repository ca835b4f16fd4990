import { refuse } from "@rollcall/errors";
import type { Clock, Logger } from "@rollcall/process";
import type { Authenticator, Caller } from "../caller.ts";
import { groupsOverage, unverifiedEmail } from "./claim-rules.ts";
import type { Claims } from "./claims.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";
import { roleOfClaims, subjectOfClaims } from "./role-of-claims.ts";
import { issuerIn, verifyToken } from "./verify-token.ts";

/** What tokens of issuers are checked with. */
export interface OidcAuthenticatorOptions {
  readonly issuers: readonly OidcIssuer[];
  readonly clock: Pick<Clock, "nowMs" | "wallMs">;
  readonly log: Logger;
}

type Person = Extract<Caller, { readonly kind: "person" }>;

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
  const warned = new Map<string, number>();
  return async (bearer) => {
    const found = known.get(issuerIn(bearer) ?? "");
    if (found === undefined) return null;
    const claims = await verify(bearer, found, clock.wallMs());
    if (claims === null) return null;
    const caller = callerOf(claims, found.issuer);
    if (caller.groupsLeftOut !== undefined && isNews(warned, `${caller.issuer} ${caller.subject}`, clock.nowMs())) {
      const { issuer, subject, role, groupsLeftOut: claim } = caller;
      log.warn(
        { issuer, subject, role, claim },
        "the issuer left the groups out of a token, none of them gives a role",
      );
    }
    return caller;
  };
}

/** Each call has its token, so a person is named once an hour. */
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

async function verify(bearer: string, { issuer, keys }: KnownIssuer, wallMs: number): Promise<Claims | null> {
  const verdict = await verifyToken(bearer, { ...issuer, keys }, wallMs);
  switch (verdict.kind) {
    case "valid":
      return verdict.claims;
    case "unsigned":
      return null;
    case "expired":
      throw refuse("TOKEN_EXPIRED", `the token of ${issuer.issuer} has expired: log in again`, {
        metadata: { issuer: issuer.issuer },
      });
    case "not-for-here":
      throw tokenInvalid(issuer, verdict.why);
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
  // A fraction of a second is valid in a token; times here are whole milliseconds.
  const expiresAtMs = Math.floor(Number(claims.exp) * 1000);
  const leftOut = overage === null ? {} : { groupsLeftOut: overage };
  return { kind: "person", issuer: issuer.issuer, subject, role, expiresAtMs, ...leftOut };
}

function noRole(subject: string, { roleClaim }: OidcIssuer, overage: string | null): Error {
  const why =
    overage === null
      ? `neither the claim ${roleClaim} of the token nor OIDC.SubjectRoles gives one`
      : `the issuer left the claim ${roleClaim} out of the token because there are too many groups (${overage}); let ` +
        "it write only groups that are assigned to the application, or use its app roles with OIDC.RoleClaim: roles";
  const metadata = { role: "none", subject, ...(overage === null ? {} : { overage }) };
  return refuse("ROLE_TOO_LOW", `user:${subject} has no role here: ${why}`, { metadata });
}

function emailUnverified({ issuer }: OidcIssuer, claim: string): Error {
  const why =
    `the claim ${claim} is an e-mail address that the issuer has not verified (email_verified is not true); verify ` +
    "it there, or name a claim in OIDC.SubjectClaim and OIDC.RoleClaim that people cannot choose, such as sub";
  return refuse("TOKEN_INVALID", `the token of ${issuer} is not one for here: ${why}`, {
    metadata: { issuer, why, unverified: claim },
  });
}

function tokenInvalid({ issuer }: OidcIssuer, why: string): Error {
  return refuse("TOKEN_INVALID", `the token of ${issuer} is not one for here: ${why}`, {
    metadata: { issuer, why },
  });
}
