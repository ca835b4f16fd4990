import { stringMap } from "@rollcall/config";
import { isRole, ROLES, type Role } from "../caller.ts";
import { issuerProblem, keysUrlProblem } from "./issuer-url.ts";
import type { OidcConfig } from "./oidc-keys.ts";

/** An issuer whose tokens are taken, and what they mean. */
export interface OidcIssuer {
  /** Its URL, exactly as its tokens name it. */
  readonly issuer: string;
  readonly audience: string;
  /** Null when people do not log in there from the command line. */
  readonly clientId: string | null;
  /** Scopes to ask for, divided by blanks. */
  readonly scopes: string;
  readonly roleClaim: string;
  /** Roles by values of the claim; when empty, the values are the roles' names. */
  readonly roleMap: Readonly<Record<string, Role>>;
  readonly subjectClaim: string;
  readonly subjectPrefix: string;
  /** Roles by subject, without the prefix. */
  readonly subjectRoles: Readonly<Record<string, Role>>;
  /** Null: who has no role is refused. */
  readonly defaultRole: Role | null;
  /** Certificates that vouch for its server; null for those that Node.js knows. */
  readonly caFile: string | null;
  /** Where its keys are; null to ask the issuer. */
  readonly jwksUrl: string | null;
}

/** What is wrong, by the key to blame. */
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

/** The issuers of a configuration that has been checked; none when it names none. */
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

/** What is wrong between the keys. */
export function checkOidcConfig(config: OidcConfig): readonly OidcProblem[] {
  const problems: OidcProblem[] = [];
  const { "OIDC.Issuer": issuer, "OIDC.MoreIssuers": more } = config;
  if (issuer !== undefined && config["OIDC.Audience"] === undefined) {
    problems.push({ path: "OIDC.Audience", message: "must be set when OIDC.Issuer is" });
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

/** Two issuers of one name could not be told apart, nor could their people under one prefix. */
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
    problems.push({ path, message: "each issuer needs a SubjectPrefix of its own" });
  }
  return problems;
}

function furtherProblems(written: Written): readonly OidcProblem[] {
  const path = "OIDC.MoreIssuers";
  const unknown = Object.keys(written).filter((key) => !KNOWN.has(key));
  const missing = ["Issuer", "Audience"].filter((key) => !written[key]);
  const { DefaultRole: role = "none" } = written;
  return [
    ...unknown.map((key) => ({ path, message: `${key} is no key of an issuer` }) as const),
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
