import { type ConfigValues, checkedText, defineKeys, list, oneOf, optional, stringMap, text } from "@rollcall/config";
import { ROLES } from "../caller.ts";
import { issuerProblem, keysUrlProblem } from "./issuer-url.ts";

/**
 * How people and programs get in that an OpenID Connect issuer vouches for. Every process of the control plane reads
 * the same.
 */
export const OIDC_KEYS = defineKeys({
  "OIDC.Issuer": {
    schema: optional(checkedText("the URL of an issuer, such as https://login.example/realm", issuerProblem)),
    default: undefined,
    doc:
      "URL of the OpenID Connect issuer whose tokens are taken, exactly as its tokens name it; https, or http on " +
      "this machine. Its keys are found through /.well-known/openid-configuration, fetched when the first token " +
      "comes, and kept: no start depends on it. Needs OIDC.Audience.",
  },
  "OIDC.Audience": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The audience that a token must have. Without it a token that the issuer made for another service would be " +
      "taken here.",
  },
  "OIDC.ClientID": {
    schema: optional(text()),
    default: undefined,
    doc:
      "The client id with which `rollcall login --oidc` logs people in, by the device flow (RFC 8628); it must " +
      "be a public client at the issuer. Without it that login is not offered, and tokens that were got " +
      "elsewhere are taken all the same.",
  },
  "OIDC.Scopes": {
    schema: text(),
    default: "openid offline_access",
    doc:
      "The scopes for which `rollcall login --oidc` asks, divided by blanks. offline_access is what makes most " +
      "issuers give a refresh token.",
  },
  "OIDC.RoleClaim": {
    schema: text(),
    default: "rollcall_role",
    doc:
      "The claim that gives the role: its name, or a path with dots such as realm_access.roles. A text or a list " +
      "of texts; of several roles the highest counts.",
  },
  "OIDC.RoleMap": {
    schema: stringMap(),
    default: {},
    doc:
      "Which values of OIDC.RoleClaim give which role (viewer, operator, submitter or admin), for example " +
      "sre=admin,oncall=operator. When empty, the values are the roles' own names.",
  },
  "OIDC.SubjectClaim": {
    schema: text(),
    default: "sub",
    doc:
      "The claim that says who it is, as events and the audit log name them: user:<subject>. It must be one that " +
      "the issuer gives to one person for ever, such as sub or oid. email, upn and preferred_username are not: the " +
      "process warns of them at its start. A token is refused if email_verified is in it and not true, and the " +
      "subject or the claim for the role is the e-mail address.",
  },
  "OIDC.SubjectPrefix": {
    schema: text({ minLength: 0, maxLength: 64 }),
    default: "",
    doc:
      "Put before the subject. With several issuers each needs another one, so that none can vouch for another's " +
      "people.",
  },
  "OIDC.SubjectRoles": {
    schema: stringMap(),
    default: {},
    doc:
      "Roles of subjects by name, without the prefix, for issuers whose tokens have no claim for it, for example " +
      "system:serviceaccount:ci:deployer=operator.",
  },
  "OIDC.DefaultRole": {
    schema: oneOf(["none", ...ROLES]),
    default: "none" as const,
    doc:
      "The role of those to whom neither OIDC.RoleClaim nor OIDC.SubjectRoles gives one. With none they are " +
      "refused.",
  },
  "OIDC.CAFile": {
    schema: optional(text()),
    default: undefined,
    doc:
      "File with the certificates, in PEM, that vouch for the issuer's server, in place of those that Node.js " +
      "knows.",
  },
  "OIDC.JWKSURL": {
    schema: optional(checkedText("a URL such as https://login.example/realm/keys", keysUrlProblem)),
    default: undefined,
    doc:
      "Where the issuer's keys are, for an issuer without /.well-known/openid-configuration, or one that is " +
      "reached under another name.",
  },
  "OIDC.MoreIssuers": {
    schema: list(stringMap()),
    default: [],
    doc:
      "Further issuers, for example a Kubernetes cluster for its service accounts: a list of maps with the same " +
      "keys without `OIDC.` in front. RoleMap and SubjectRoles are written as one text: " +
      "sre=admin,oncall=operator. In a file alone.",
  },
});

/** The values of these keys. */
export type OidcConfig = ConfigValues<typeof OIDC_KEYS>;
