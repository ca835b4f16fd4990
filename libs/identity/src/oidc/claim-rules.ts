import { type Claims, claimAt, textsIn } from "./claims.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

type UsedClaims = Pick<OidcIssuer, "subjectClaim" | "roleClaim">;

/** The last second that an API timestamp can represent, at the end of the year 9999. */
const LAST_SECOND = 253_402_300_799;
/** The last part of a claim's name or path. */
const LAST_PART = /[^./:]*$/;
/** Matches any part of the path, as in `emails.0`, `user_email` or `email_address`. */
const EMAIL = /e?mails?/i;
/** Claims that people can change, or that issuers can later reassign to other people. */
const MUTABLE = /^(upn|unique_name|preferred_username|nickname|name)$/i;

/** The problem with a token's times; null when they are valid. */
export function timeProblem(claims: Claims): string | null {
  for (const name of ["exp", "nbf", "iat"]) {
    const value = claims[name];
    if (value === undefined) continue;
    if (typeof value !== "number" || !(value >= 0 && value <= LAST_SECOND)) {
      return `its claim ${name} is not a time between 1970 and 9999`;
    }
  }
  return null;
}

/**
 * The claim for the subject or role that contains an e-mail address which the issuer has not verified. Such a claim is
 * unsafe, because anyone could have entered someone else's address. Null when there is no such claim, or when the token
 * does not say whether the address is verified.
 */
export function unverifiedEmail(claims: Claims, { subjectClaim, roleClaim }: UsedClaims): string | null {
  const address = typeof claims.email === "string" ? claims.email.toLowerCase() : null;
  const isEmail = (claim: string) =>
    isEmailName(claim) ||
    textsIn(claimAt(claims, claim)).some(
      (text) => text.toLowerCase() === address || (claim === subjectClaim && claim !== "sub" && text.includes("@")),
    );
  return [subjectClaim, roleClaim].find((claim) => isEmail(claim) && isUnverified(claims, claim)) ?? null;
}

/** The claims for the subject and role that do not permanently identify one person or group. */
export function mutableClaims({ subjectClaim, roleClaim }: UsedClaims): readonly string[] {
  return [...new Set([subjectClaim, roleClaim])].filter((claim) => isEmailName(claim) || MUTABLE.test(lastPart(claim)));
}

/**
 * The claim that Entra ID sets when it omits the groups from a token because there are too many. Null when no group
 * that could grant a role was omitted.
 */
export function groupsOverage(claims: Claims, roleClaim: string): string | null {
  const { _claim_names: elsewhere } = claims;
  if (typeof elsewhere === "object" && elsewhere !== null && Object.hasOwn(elsewhere, roleClaim)) return "_claim_names";
  const hasGroups = claims.hasgroups === true || claims.hasgroups === "true";
  return hasGroups && roleClaim === "groups" && claims.groups === undefined ? "hasgroups" : null;
}

/** Whether an address is not verified. email_verified can be next to the claim or at the top level of the token. */
function isUnverified(claims: Claims, claim: string): boolean {
  const beside = claim.replace(LAST_PART, "email_verified");
  return ["email_verified", beside].some((name) => {
    const isVerified = claimAt(claims, name);
    return isVerified !== undefined && isVerified !== true;
  });
}

/**
 * Whether a claim has the name of an e-mail address. If the claim's name is a URL, only the last part of the URL is
 * checked.
 */
function isEmailName(claim: string): boolean {
  return EMAIL.test(claim.includes("://") ? lastPart(claim) : claim);
}

function lastPart(claim: string): string {
  return LAST_PART.exec(claim)?.[0] ?? claim;
}
