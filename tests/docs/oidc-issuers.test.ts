import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { oidcIssuersOf } from "../../libs/identity/src/oidc/oidc-issuers.ts";
import { roleOfClaims, subjectOfClaims } from "../../libs/identity/src/oidc/role-of-claims.ts";
import { loadControlPlaneConfig } from "../../services/rollcall/src/config/control-plane-config.ts";
import { workspaceRoot } from "../support/workspace.ts";

const PAGE = readFileSync(join(workspaceRoot, "docs/how-to/oidc-issuers.md"), "utf8");
const sections = PAGE.split(/^## /m).slice(1);
const folder = mkdtempSync(join(tmpdir(), "rollcall-oidc-"));
afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Claims as each issuer writes them into the token of the page, without those that every token has, and the caller
 * that they identify.
 */
const CLAIMS: Readonly<Record<string, readonly [claims: Readonly<Record<string, unknown>>, caller: string]>> = {
  Keycloak: [{ sub: "7d1b4a0e", groups: ["oncall", "chess"], azp: "rollcall" }, "operator 7d1b4a0e"],
  Dex: [{ sub: "CgcyMzQ1Njc4", groups: ["acme:oncall"], email: "a@example.org" }, "operator CgcyMzQ1Njc4"],
  Google: [{ sub: "104213859213450987321", azp: "x" }, "operator 104213859213450987321"],
  "Entra ID": [{ sub: "AAAA", oid: "2222", roles: ["viewer", "operator"], ver: "2.0" }, "operator 2222"],
  Okta: [{ sub: "a@example.org", uid: "00u1", groups: ["rollcall-operator"] }, "operator 00u1"],
  "GitHub Actions": [
    { sub: "repo:acme/fleet:environment:production", repository: "acme/fleet" },
    "operator github:repo:acme/fleet:environment:production",
  ],
};

describe("docs/how-to/oidc-issuers.md", () => {
  it("should have a section for each issuer", () => {
    expect(sections.map((text) => text.split("\n")[0])).toEqual(Object.keys(CLAIMS));
  });

  it.each(Object.entries(CLAIMS))(
    "should give callers the role that their claims grant: %s",
    async (name, [claims, caller]) => {
      const [, yaml = ""] =
        /^```yaml\n([\s\S]*?)^```/m.exec(sections.find((text) => text.startsWith(name)) ?? "") ?? [];
      const file = join(folder, "rollcall.yaml");
      writeFileSync(file, yaml);
      const { values, warnings } = await loadControlPlaneConfig({ shell: { env: {}, cwd: folder }, file, flags: {} });
      expect(warnings).toEqual([]);
      const issuer = oidcIssuersOf(values).at(-1);
      const found = issuer && subjectOfClaims(claims, issuer);
      expect(issuer && found && `${roleOfClaims(claims, found.name, issuer)} ${found.subject}`).toBe(caller);
      expect(issuer && roleOfClaims({ sub: "someone" }, "someone", issuer)).toBeNull();
    },
  );
});
