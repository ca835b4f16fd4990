import { type Claims, claimAt, textsIn } from "./claims.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

type UsedClaims = Pick<OidcIssuer, "subjectClaim" | "roleClaim">;

/** The last second that a timestamp of the API can have, at the end of the year 9999. */
const LAST_SECOND = 253_402_300_799;
/** The last part of a claim's name, or of the path that it is. */
const LAST_PART = /[^./:]*$/;
/** In any part of the path, as in `emails.0`, `user_email` or `email_address`. */
const EMAIL = /e?mails?/i;
/** Claims that people can change, or that issuers give to somebody else later. */
const MUTABLE = /^(upn|unique_name|preferred_username|nickname|name)$/i;

/** Which time of a token cannot be one, in words; null when none is wrong. */
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
 * The claim that decides who the caller is or which role they have, and is an e-mail address that the issuer has not
 * verified: anybody could have entered the address of somebody else. Null when there is none, or when the token does
 * not say whether the address is verified.
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

/** Which claims that decide who a caller is, or which role they have, do not name one person or group for ever. */
export function mutableClaims({ subjectClaim, roleClaim }: UsedClaims): readonly string[] {
  return [...new Set([subjectClaim, roleClaim])].filter((claim) => isEmailName(claim) || MUTABLE.test(lastPart(claim)));
}

/**
 * The claim by which Entra ID says that it left the groups out of a token because there are too many; null when it
 * has left out nothing that gives a role.
 */
export function groupsOverage(claims: Claims, roleClaim: string): string | null {
  const elsewhere = claims._claim_names;
  if (typeof elsewhere === "object" && elsewhere !== null && Object.hasOwn(elsewhere, roleClaim)) return "_claim_names";
  const hasGroups = claims.hasgroups === true || claims.hasgroups === "true";
  return hasGroups && roleClaim === "groups" && claims.groups === undefined ? "hasgroups" : null;
}

/** The token says so beside the claim, or for all of the token. */
function isUnverified(claims: Claims, claim: string): boolean {
  const beside = claim.replace(LAST_PART, "email_verified");
  return ["email_verified", beside].some((name) => {
    const isVerified = claimAt(claims, name);
    return isVerified !== undefined && isVerified !== true;
  });
}

/** Whether a claim has the name of an e-mail address. A name that is a URL has it in its last part. */
function isEmailName(claim: string): boolean {
  return EMAIL.test(claim.includes("://") ? lastPart(claim) : claim);
}

function lastPart(claim: string): string {
  return LAST_PART.exec(claim)?.[0] ?? claim;
}
