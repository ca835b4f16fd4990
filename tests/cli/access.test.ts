import { describe, expect, it } from "@jest/globals";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const TEXT = /^rc_([0-9a-f]{12})_\S+\n$/;

async function create(name: string, role = "viewer"): Promise<{ readonly id: string; readonly text: string }> {
  const { code, out } = await rig.run(`access create ${name} --role ${role}`);
  expect(code).toBe(0);
  return { id: TEXT.exec(out)?.[1] ?? "", text: out.trim() };
}

describe("access create", () => {
  it("should print only the token on standard output, and its description on standard error", async () => {
    const { code, out, err } = await rig.run("access create ci --role viewer --ttl 30d --request-id r1");
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(TEXT) });
    const id = TEXT.exec(out)?.[1];
    expect(err).toMatch(
      new RegExp(
        `^Access token ${id} \\(ci\\) has the role viewer and is valid until \\d.*Z\\. It is not shown again\\.\n$`,
      ),
    );
    const again = await rig.run("access create ci --role viewer --ttl 30d --request-id r1");
    expect(again).toMatchObject({ code: 0, out });
  });

  it("should print the answer as JSON", async () => {
    const { out, err } = await rig.run("access create ci --role admin --output json");
    expect(err).toBe("");
    expect(JSON.parse(out)).toMatchObject({ text: expect.stringMatching(/^rc_/), accessToken: { role: "ROLE_ADMIN" } });
  });

  it.each([
    ["access create ci", "required option '--role <role>' not specified"],
    ["access create ci --role root", "cannot use 'root' as role value"],
    ["access create ci --role viewer --ttl soon", "cannot use 'soon' as ttl value"],
  ])("should refuse '%s'", async (line, err) => {
    const answer = await rig.run(line, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(answer).toMatchObject({ code: 2, err: expect.stringContaining(err) });
  });
});

describe("access list and revoke", () => {
  it("should list tokens, the oldest first, and revoked ones with --all", async () => {
    const one = await create("one");
    const two = await create("two", "operator");
    const rows = (await rig.run("access list")).out
      .split("\n")
      .map((line) => line.split(/ {2,}/).slice(0, 4).join(" "));
    expect(rows[0]).toBe("ID NAME ROLE STATE");
    expect(rows.slice(-3)).toEqual([`${one.id} one viewer valid`, `${two.id} two operator valid`, ""]);
    // Revoke a token by its text. The command sends only the id in the text.
    const answer = await rig.run(`access revoke ${two.text} -m lost`);
    expect(answer).toEqual({ code: 0, out: expect.stringMatching(/^Ok: access token \S+ revoked\n$/), err: "" });
    expect((await rig.run("access list -o name")).out).not.toContain(two.id);
    const csv = (await rig.run("access list --all -o csv")).out;
    expect(csv).toMatch(new RegExp(`\r\n${two.id},two,operator,REVOKED,,,\\d{4}-`));
    const again = await rig.run(`access revoke ${two.id}`);
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Ok: access token \S+ was already revoked\n$/),
    });
    expect((await rig.run(`access revoke ${two.id} --strict`)).code).toBe(1);
  });

  it("should name the token that does not exist", async () => {
    const { code, err } = await rig.run("access revoke nobody");
    expect(code).toBe(1);
    expect(err).toMatch(/^failed to revoke access token nobody: /);
  });

  it("should warn when no token of an administrator is left", async () => {
    const { accessTokens } = JSON.parse((await rig.run("access list -o json")).out);
    const admins = accessTokens.filter(({ role }: { role: string }) => role === "ROLE_ADMIN");
    const last = await create("last", "admin");
    const env = { ROLLCALL_TOKEN: last.text };
    for (const { id } of admins) await rig.run(`access revoke ${id}`, { env });
    const declined = await rig.run(`access revoke ${last.id}`, { env, ask: async () => "n" });
    expect(declined).toMatchObject({
      code: 1,
      err: "warning: this is the last access token with the role admin\nnothing was changed\n",
    });
    const { code, err } = await rig.run(`access revoke ${last.id}`, { env });
    expect(code).toBe(0);
    expect(err).toMatch(/^warning: no access token with the role admin is left\nhint: /);
  });
});
