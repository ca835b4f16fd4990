import { type Role, roleSuffices } from "../caller.ts";
import { type Claims, claimAt, textsIn } from "./claims.ts";
import type { OidcIssuer } from "./oidc-issuers.ts";

type RoleRules = Pick<OidcIssuer, "roleClaim" | "roleMap" | "subjectRoles" | "defaultRole">;
type SubjectRules = Pick<OidcIssuer, "subjectClaim" | "subjectPrefix">;

const ROLES: Readonly<Record<string, Role>> = {
  viewer: "viewer",
  operator: "operator",
  submitter: "submitter",
  admin: "admin",
};
/** Characters that would split a log line or be invisible in it. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
const LONGEST_SUBJECT = 255;

/**
 * The highest role that the claims or the subject grant, or otherwise the default; null for none. Neither
 * operator nor submitter includes the other. If both are granted, the role that was found first wins.
 */
export function roleOfClaims(claims: Claims, subject: string, rules: RoleRules): Role | null {
  const { roleClaim, roleMap, subjectRoles, defaultRole } = rules;
  const known = Object.keys(roleMap).length === 0 ? ROLES : roleMap;
  const given = textsIn(claimAt(claims, roleClaim)).map((value) => own(known, value));
  const roles = [...given, own(subjectRoles, subject)].filter((role) => role !== undefined);
  const highest = (one: Role, other: Role) => (roleSuffices(other, one) ? other : one);
  return roles.length === 0 ? defaultRole : roles.reduce(highest);
}

/** The subject without and with the prefix; null when the claim is missing or cannot be written to a log. */
export function subjectOfClaims(
  claims: Claims,
  { subjectClaim, subjectPrefix }: SubjectRules,
): { readonly name: string; readonly subject: string } | null {
  const name = claimAt(claims, subjectClaim);
  if (typeof name !== "string" || name === "" || UNPRINTABLE.test(name)) return null;
  const subject = `${subjectPrefix}${name}`;
  return subject.length > LONGEST_SUBJECT ? null : { name, subject };
}

function own<V>(map: Readonly<Record<string, V>>, key: string): V | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
