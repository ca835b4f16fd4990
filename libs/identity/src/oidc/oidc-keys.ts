import { type ConfigValues, checkedText, defineKeys, list, oneOf, optional, stringMap, text } from "@rollcall/config";
import { ROLES } from "../caller.ts";
import { issuerProblem, keysUrlProblem } from "./issuer-url.ts";

/** The configuration of authentication by OpenID Connect issuers. All control plane processes have the same keys. */
export const OIDC_KEYS = defineKeys({
  "OIDC.Issuer": {
    schema: optional(checkedText("the URL of an issuer, such as https://login.example/realm", issuerProblem)),
    default: undefined,
    doc:
      "URL of the OpenID Connect issuer whose tokens are accepted, exactly as in its tokens; https, or http on this " +
      "machine. Its keys are found through /.well-known/openid-configuration. They are fetched with the first token " +
      "and cached, so startup does not depend on the issuer. Requires OIDC.Audience.",
  },
  "OIDC.Audience": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The audience that a token must have. Without this check, tokens that the issuer made for other services " +
      "would be " +
      "accepted.",
  },
  "OIDC.ClientID": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The client id that `rollcall login --oidc` uses for the device flow (RFC 8628); it must be a public client " +
      "at the issuer. When not set, that login is not offered, but tokens obtained elsewhere are still accepted.",
  },
  "OIDC.Scopes": {
    schema: text(),
    default: "openid offline_access",
    doc:
      "The scopes that `rollcall login --oidc` requests, separated by spaces. Most issuers grant a refresh token " +
      "only for offline_access.",
  },
  "OIDC.RoleClaim": {
    schema: text(),
    default: "rollcall_role",
    doc:
      "The claim with the role: its name, or a path with dots such as realm_access.roles. Its value is a string or " +
      "a list of strings; the highest role counts.",
  },
  "OIDC.RoleMap": {
    schema: stringMap(),
    default: {},
    doc:
      "The role (viewer, operator, submitter or admin) for each value of OIDC.RoleClaim, for example " +
      "sre=admin,oncall=operator. When empty, the values are role names.",
  },
  "OIDC.SubjectClaim": {
    schema: text(),
    default: "sub",
    doc:
      "The claim that identifies the caller in events and the audit log: user:<subject>. The issuer must never " +
      "reassign its value to another person, as with sub or oid. email, upn and preferred_username can be " +
      "reassigned, so the process warns about them at startup. If the subject or role claim is an e-mail address, " +
      "a token whose email_verified is present and not true is refused.",
  },
  "OIDC.SubjectPrefix": {
    schema: text({ minLength: 0, maxLength: 64 }),
    default: "",
    doc:
      "Prefix for subjects. Each of several issuers needs a different one, so that none can impersonate another's " +
      "users.",
  },
  "OIDC.SubjectRoles": {
    schema: stringMap(),
    default: {},
    doc:
      "Roles by subject, without the prefix, for issuers whose tokens have no role claim, for example " +
      "system:serviceaccount:ci:deployer=operator.",
  },
  "OIDC.DefaultRole": {
    schema: oneOf(["none", ...ROLES]),
    default: "none" as const,
    doc: "The role of callers without a role from OIDC.RoleClaim or OIDC.SubjectRoles. With none they are refused.",
  },
  "OIDC.CAFile": {
    schema: optional(text()),
    isPath: true,
    default: undefined,
    doc: "PEM file of the certificates to trust for the issuer's server, instead of Node.js's own.",
  },
  "OIDC.JWKSURL": {
    schema: optional(checkedText("a URL such as https://login.example/realm/keys", keysUrlProblem)),
    default: undefined,
    doc:
      "URL of the issuer's keys, for an issuer that has no /.well-known/openid-configuration or must be reached " +
      "under another name.",
  },
  "OIDC.MoreIssuers": {
    schema: list(stringMap()),
    default: [],
    doc:
      "Further issuers, for example a Kubernetes cluster for its service accounts: a list of maps with the same " +
      "keys without the prefix `OIDC.`. Write RoleMap and SubjectRoles as one string: sre=admin,oncall=operator. " +
      "Can be set only in a file.",
  },
});

export type OidcConfig = ConfigValues<typeof OIDC_KEYS>;
