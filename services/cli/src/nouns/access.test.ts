import { describe, expect, it } from "@jest/globals";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();

describe("access create", () => {
  it("should print the token alone on standard output, and what it is on standard error", async () => {
    const line = "access create ci --role viewer --ttl 30d --request-id r1";
    expect(await runAgainst(server, line)).toEqual({
      code: 0,
      out: "rc_0000000000a1_secret\n",
      err: expect.stringMatching(
        /^Access token 0000000000a1 \(ci\) has the role viewer and is valid until .*\. It is not shown again\.\n$/,
      ),
    });
    expect(server.calls).toEqual([`CreateAccessToken ci 1 ${30 * 86_400_000} r1`]);
  });

  it("should print the answer as JSON", async () => {
    const { out, err } = await runAgainst(server, "access create ci --role admin --output json");
    expect(err).toBe("");
    expect(JSON.parse(out)).toMatchObject({
      text: "rc_0000000000a1_secret",
      accessToken: { id: "0000000000a1", role: "ROLE_ADMIN" },
    });
  });

  it.each([
    ["access create ci", "required option '--role <role>' not specified"],
    ["access create ci --role root", "cannot use 'root' as role value"],
    ["access create ci --role viewer --ttl soon", "cannot use 'soon' as ttl value"],
  ])("should refuse '%s'", async (line, err) => {
    const answer = await runAgainst(server, line);
    expect(answer).toMatchObject({ code: 2, err: expect.stringContaining(err) });
    expect(server.calls).toEqual([]);
  });
});

describe("access list", () => {
  it("should print every page", async () => {
    for (const name of ["one", "two", "three"]) {
      await runAgainst(server, `access create ${name} --role viewer`);
    }
    const { out } = await runAgainst(server, "access list");
    expect(out.split("\n").map((line) => line.split(/ +/).slice(0, 4).join(" "))).toEqual([
      "ID NAME ROLE STATE",
      "0000000000a1 one viewer VALID",
      "0000000000a2 two viewer VALID",
      "0000000000a3 three viewer VALID",
      "",
    ]);
    const { out: csv } = await runAgainst(server, "access list --all --output csv");
    expect(csv).toContain("0000000000a3,three,viewer,VALID,,,");
    expect(server.calls.at(-1)).toBe("ListAccessTokens 2 true");
  });
});

describe("access revoke", () => {
  it("should take an id, or the token itself, which goes no further", async () => {
    await runAgainst(server, "access create one --role viewer");
    const text = `rc_0000000000a1_${"x".repeat(43)}`;
    const answer = await runAgainst(server, `access revoke ${text} -m lost --request-id r1`);
    expect(answer).toEqual({ code: 0, out: "Ok\n", err: "" });
    expect(server.calls.at(-1)).toBe("RevokeAccessToken 0000000000a1 lost r1");
  });

  it("should warn when nobody is left", async () => {
    await runAgainst(server, "access create one --role admin");
    server.access.adminTokensLeft = 0;
    const { err, code } = await runAgainst(server, "access revoke 0000000000a1");
    expect(code).toBe(0);
    expect(err).toMatch(/^warning: no access token of role admin is left\nhint: /);
  });

  it("should say which one there is not", async () => {
    expect(await runAgainst(server, "access revoke nobody")).toEqual({
      code: 1,
      out: "",
      err: "failed to revoke access token nobody: no access token has the id nobody\n",
    });
  });
});

describe("whoami", () => {
  it("should print who it is", async () => {
    expect(await runAgainst(server, "whoami")).toEqual({
      code: 0,
      err: "",
      out: lines(
        "actor    token:0123456789ab",
        "role     operator",
        "expires  never",
        "name     alice's laptop",
        "cluster  c1",
        `server   ${server.address}`,
        "context  -",
      ),
    });
  });

  it("should print the answer as JSON", async () => {
    const { out } = await runAgainst(server, "whoami --output json");
    expect(JSON.parse(out)).toMatchObject({
      actor: "token:0123456789ab",
      accessToken: { id: "0123456789ab" },
    });
  });
});
