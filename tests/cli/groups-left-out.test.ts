import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestIssuer } from "../../libs/testkit/src/test-issuer.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const issuer = new TestIssuer();
// Start the issuer before the control plane, because the control plane needs its address. Hooks run in the
// order of their definition.
beforeAll(() => issuer.start());
const rig = useControlPlane(() => ({
  "OIDC.Issuer": issuer.url,
  "OIDC.Audience": issuer.audience,
  "OIDC.RoleClaim": "groups",
  "OIDC.RoleMap": "sre=admin",
  "OIDC.DefaultRole": "viewer",
  "OIDC.SubjectRoles": "carol=operator",
}));
afterAll(() => issuer.stop());

const WARNING = /^warning: the issuer left your groups out of the token because there are too many \((\S+)\)/m;

describe("a person whose issuer left the groups out of the token", () => {
  it.each([
    ["alice", { _claim_names: { groups: "src1" } }, "viewer", "_claim_names"],
    ["bob", { hasgroups: true }, "viewer", "hasgroups"],
    ["carol", { hasgroups: "true" }, "operator", "hasgroups"],
  ])("should get a warning that groups give no role: %s", async (sub, claims, role, claim) => {
    const env = { ROLLCALL_TOKEN: await issuer.token({ sub, ...claims }) };
    const { code, out, err } = await rig.run("whoami", { env });
    expect([code, out]).toEqual([0, expect.stringMatching(new RegExp(`^role +${role}$`, "m"))]);
    expect(WARNING.exec(err)?.[1]).toBe(claim);
    const json = JSON.parse((await rig.run("whoami -o json", { env })).out);
    expect(json.person).toMatchObject({ subject: sub, groupsLeftOut: claim });
    const login = await rig.run("login", { env });
    expect([login.code, WARNING.exec(login.err)?.[1]]).toEqual([0, claim]);
  });

  it("should not be warned when the groups are present", async () => {
    const env = { ROLLCALL_TOKEN: await issuer.token({ sub: "alice", groups: ["sre"] }) };
    const { out, err } = await rig.run("whoami", { env });
    expect([out, err]).toEqual([expect.stringMatching(/^role +admin$/m), ""]);
  });
});
