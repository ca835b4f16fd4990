import { stringMap } from "@rollcall/config";
import { isRole, ROLES, type Role } from "../caller.ts";
import { issuerProblem, keysUrlProblem } from "./issuer-url.ts";
import type { OidcConfig } from "./oidc-keys.ts";

/** A trusted issuer, and how to interpret its tokens. */
export interface OidcIssuer {
  /** The issuer's URL, exactly as in its tokens. */
  readonly issuer: string;
  readonly audience: string;
  /** The client id for `rollcall login`; null when `rollcall login` does not use this issuer. */
  readonly clientId: string | null;
  /** Scopes to request, separated by spaces. */
  readonly scopes: string;
  readonly roleClaim: string;
  /** Roles, keyed by claim value. When empty, the claim values are role names. */
  readonly roleMap: Readonly<Record<string, Role>>;
  readonly subjectClaim: string;
  readonly subjectPrefix: string;
  /** Roles, keyed by subject without the prefix. */
  readonly subjectRoles: Readonly<Record<string, Role>>;
  /** The role of callers to whom nothing else grants a role; null to refuse them. */
  readonly defaultRole: Role | null;
  /** PEM file of certificates to trust for the issuer's server; null for the defaults of Node.js. */
  readonly caFile: string | null;
  /** URL of the issuer's keys; null to discover it from the issuer. */
  readonly jwksUrl: string | null;
}

/** A problem, with the key that causes it. */
export interface OidcProblem {
  readonly path: keyof OidcConfig & string;
  readonly message: string;
}

type Written = Readonly<Record<string, string>>;

const DEFAULTS = { RoleClaim: "rollcall_role", SubjectClaim: "sub", SubjectPrefix: "" } as const;
const DEFAULT_SCOPES = "openid offline_access";
const KNOWN = new Set([
  ...["Issuer", "Audience", "ClientID", "Scopes", "RoleClaim", "RoleMap", "SubjectClaim"],
  ...["SubjectPrefix", "SubjectRoles", "DefaultRole", "CAFile", "JWKSURL"],
]);

/** The issuers of a validated configuration; may be empty. */
export function oidcIssuersOf(config: OidcConfig): readonly OidcIssuer[] {
  const { "OIDC.Issuer": issuer, "OIDC.Audience": audience } = config;
  const more = config["OIDC.MoreIssuers"].map(furtherIssuer);
  if (issuer === undefined || audience === undefined) return more;
  const { "OIDC.DefaultRole": role } = config;
  const first: OidcIssuer = {
    issuer,
    audience,
    clientId: config["OIDC.ClientID"] ?? null,
    scopes: config["OIDC.Scopes"],
    roleClaim: config["OIDC.RoleClaim"],
    roleMap: rolesIn(config["OIDC.RoleMap"]),
    subjectClaim: config["OIDC.SubjectClaim"],
    subjectPrefix: config["OIDC.SubjectPrefix"],
    subjectRoles: rolesIn(config["OIDC.SubjectRoles"]),
    defaultRole: role === "none" ? null : role,
    caFile: config["OIDC.CAFile"] ?? null,
    jwksUrl: config["OIDC.JWKSURL"] ?? null,
  };
  return [first, ...more];
}

/** Find conflicts between the keys. */
export function checkOidcConfig(config: OidcConfig): readonly OidcProblem[] {
  const problems: OidcProblem[] = [];
  const { "OIDC.Issuer": issuer, "OIDC.MoreIssuers": more } = config;
  if (issuer !== undefined && config["OIDC.Audience"] === undefined) {
    problems.push({ path: "OIDC.Audience", message: "must be set if OIDC.Issuer is set" });
  }
  for (const path of ["OIDC.RoleMap", "OIDC.SubjectRoles"] as const) {
    problems.push(...roleProblems(path, config[path]));
  }
  for (const [index, written] of more.entries()) {
    const path = "OIDC.MoreIssuers";
    for (const { message } of furtherProblems(written)) {
      problems.push({ path, message: `item ${index}: ${message}` });
    }
  }
  return [...problems, ...sharedNames(config)];
}

/**
 * Find names and prefixes that several issuers share. Issuers with the same name would be ambiguous, and so would
 * people with the same prefix.
 */
function sharedNames(config: OidcConfig): readonly OidcProblem[] {
  const path = "OIDC.MoreIssuers";
  const { "OIDC.Issuer": issuer, "OIDC.SubjectPrefix": prefix, [path]: more } = config;
  const first = issuer === undefined ? [] : [{ Issuer: issuer, SubjectPrefix: prefix }];
  const all: readonly Written[] = [...first, ...more];
  const repeats = (values: readonly string[]) => new Set(values).size < values.length;
  const problems: OidcProblem[] = [];
  if (repeats(all.map((it) => it.Issuer ?? ""))) {
    problems.push({ path, message: "names an issuer twice" });
  }
  if (repeats(all.map((it) => it.SubjectPrefix ?? ""))) {
    problems.push({ path, message: "each issuer needs a different SubjectPrefix" });
  }
  return problems;
}

function furtherProblems(written: Written): readonly OidcProblem[] {
  const path = "OIDC.MoreIssuers";
  const unknown = Object.keys(written).filter((key) => !KNOWN.has(key));
  const missing = ["Issuer", "Audience"].filter((key) => !written[key]);
  const { DefaultRole: role = "none" } = written;
  return [
    ...unknown.map((key) => ({ path, message: `${key} is not an issuer key` }) as const),
    ...missing.map((key) => ({ path, message: `${key} must be set` }) as const),
    ...[written.Issuer && issuerProblem(written.Issuer), written.JWKSURL && keysUrlProblem(written.JWKSURL)].flatMap(
      (message) => (message ? [{ path, message } as const] : []),
    ),
    ...["RoleMap", "SubjectRoles"].flatMap((key) => roleProblems(path, pairsIn(written[key]))),
    ...(role === "none" || isRole(role) ? [] : roleProblems(path, { DefaultRole: role })),
  ];
}

function furtherIssuer(written: Written): OidcIssuer {
  const { DefaultRole: role = "none" } = written;
  return {
    issuer: written.Issuer ?? "",
    audience: written.Audience ?? "",
    clientId: written.ClientID ?? null,
    scopes: written.Scopes ?? DEFAULT_SCOPES,
    roleClaim: written.RoleClaim ?? DEFAULTS.RoleClaim,
    roleMap: rolesIn(pairsIn(written.RoleMap)),
    subjectClaim: written.SubjectClaim ?? DEFAULTS.SubjectClaim,
    subjectPrefix: written.SubjectPrefix ?? DEFAULTS.SubjectPrefix,
    subjectRoles: rolesIn(pairsIn(written.SubjectRoles)),
    defaultRole: isRole(role) ? role : null,
    caFile: written.CAFile ?? null,
    jwksUrl: written.JWKSURL ?? null,
  };
}

function roleProblems(path: OidcProblem["path"], roles: Written): readonly OidcProblem[] {
  return Object.entries(roles)
    .filter(([, role]) => !isRole(role))
    .map(([key, role]) => {
      return { path, message: `${key}: "${role}" is not one of ${ROLES.join(", ")}` };
    });
}

function pairsIn(text: string | undefined): Written {
  const parsed = stringMap().safeParse(text ?? "");
  return parsed.success ? parsed.data : { [text ?? ""]: "" };
}

function rolesIn(written: Written): Readonly<Record<string, Role>> {
  const known = Object.entries(written).filter((pair): pair is [string, Role] => isRole(pair[1]));
  return Object.fromEntries(known);
}
