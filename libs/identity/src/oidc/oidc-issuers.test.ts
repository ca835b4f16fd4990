import { describe, expect, it } from "@jest/globals";
import { loadConfig } from "@rollcall/config";
import { checkOidcConfig, oidcIssuersOf } from "./oidc-issuers.ts";
import { OIDC_KEYS } from "./oidc-keys.ts";

function load(text: string) {
  const file = { name: "rollcall.yaml", text };
  return loadConfig({ keys: OIDC_KEYS, file, check: checkOidcConfig });
}

function issuersIn(text: string) {
  const result = load(text);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return oidcIssuersOf(result.config.values);
}

function problemsIn(text: string): readonly string[] {
  const result = load(text);
  return result.ok ? [] : result.problems.map(({ path, message }) => `${path}: ${message}`);
}

describe("oidcIssuersOf()", () => {
  it("should find none when none is configured", () => {
    expect(issuersIn("")).toEqual([]);
  });

  it("should read one issuer with defaults", () => {
    const text = "OIDC: {Issuer: https://login.example, Audience: rollcall}";
    expect(issuersIn(text)).toEqual([
      {
        issuer: "https://login.example",
        audience: "rollcall",
        clientId: null,
        scopes: "openid offline_access",
        roleClaim: "rollcall_role",
        roleMap: {},
        subjectClaim: "sub",
        subjectPrefix: "",
        subjectRoles: {},
        defaultRole: null,
        caFile: null,
        jwksUrl: null,
      },
    ]);
  });

  it("should read several, such as a Kubernetes cluster's service accounts", () => {
    const text = `
      OIDC:
        Issuer: https://login.example
        Audience: rollcall
        ClientID: cli
        RoleClaim: groups
        RoleMap: {sre: admin, staff: viewer}
        DefaultRole: viewer
        MoreIssuers:
          - Issuer: https://kubernetes.default.svc
            Audience: rollcall
            SubjectPrefix: "k8s:"
            SubjectRoles: system:serviceaccount:ci:deployer=operator
            CAFile: /var/run/secrets/ca.crt
            JWKSURL: https://10.0.0.1/openid/v1/jwks`;
    expect(issuersIn(text)).toMatchObject([
      { clientId: "cli", roleMap: { sre: "admin", staff: "viewer" }, defaultRole: "viewer" },
      {
        issuer: "https://kubernetes.default.svc",
        subjectPrefix: "k8s:",
        subjectRoles: { "system:serviceaccount:ci:deployer": "operator" },
        caFile: "/var/run/secrets/ca.crt",
        jwksUrl: "https://10.0.0.1/openid/v1/jwks",
        roleClaim: "rollcall_role",
      },
    ]);
  });
});

describe("checkOidcConfig()", () => {
  it.each([
    ["OIDC: {Issuer: https://a.example}", "OIDC.Audience: must be set"],
    ["OIDC: {Issuer: http://a.example, Audience: a}", "OIDC.Issuer: .* https://"],
    ["OIDC: {JWKSURL: http://a.example}", "OIDC.JWKSURL: .* https://"],
    ["OIDC: {RoleMap: {sre: root}}", 'OIDC.RoleMap: sre: "root" is not'],
    ["OIDC: {SubjectRoles: {bob: root}}", "OIDC.SubjectRoles: bob"],
    ["OIDC: {MoreIssuers: [{Issuer: https://a.example}]}", "item 0: Audience must be set"],
    ["OIDC: {MoreIssuers: [{Isuer: https://a.example}]}", "item 0: Isuer is not an issuer key"],
    ["OIDC: {MoreIssuers: [{Issuer: https://a.example, Audience: a, RoleMap: x=root}]}", 'item 0: x: "root"'],
    [
      "OIDC: {MoreIssuers: [{Issuer: https://a.example, Audience: a}, {Issuer: https://b.example, Audience: a}]}",
      "each issuer needs a different SubjectPrefix",
    ],
    [
      "OIDC: {Issuer: https://a.example, Audience: a, MoreIssuers: [{Issuer: https://a.example, Audience: a, " +
        "SubjectPrefix: x}]}",
      "names an issuer twice",
    ],
  ])("should find what is wrong with %s", (text, problem) => {
    expect(problemsIn(text).join("\n")).toMatch(new RegExp(problem));
  });

  it("should allow http on this machine", () => {
    expect(problemsIn("OIDC: {Issuer: 'http://127.0.0.1:1', Audience: a}")).toEqual([]);
  });
});
