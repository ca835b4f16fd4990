import { describe, expect, it } from "@jest/globals";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const TEXT = /^rcj_[0-9a-f]+_([0-9a-f]{12})_\S+\n$/;

async function create(options = ""): Promise<{ readonly id: string; readonly text: string; readonly err: string }> {
  const { code, out, err } = await rig.run(`token create ${options}`.trim());
  expect(code).toBe(0);
  return { id: TEXT.exec(out)?.[1] ?? "", text: out.trim(), err };
}

describe("token create", () => {
  it("should print only the token on standard output, and the command to run", async () => {
    const terminal = { columns: 200, rows: 50 };
    const { code, out, err } = await rig.run("token create", { terminal });
    expect(code).toBe(0);
    const id = TEXT.exec(out)?.[1];
    expect(err).toMatch(new RegExp(`^\\nJoin token ${id} is valid for one machine until \\d{4}-\\S+ \\S+Z\\.`));
    expect(err).toContain(`\n  rollcall agent --server ${rig.address} --join-token ${out}`);
  });

  it("should keep the token out of standard error without a terminal", async () => {
    const { text, err } = await create();
    expect(err).toContain(`rollcall agent --server ${rig.address} --join-token TOKEN\n`);
    expect(err).not.toContain(text);
  });

  it("should create a token with the requested properties", async () => {
    const { id } = await create(
      "--description racks --uses 3 --ttl 7d --name-pattern gpu-* --label zone=a --label rack=7 --group edge " +
        "--preauthorized --ephemeral",
    );
    const { token } = JSON.parse((await rig.run(`token show ${id} -o json`)).out);
    expect(token).toMatchObject({
      description: "racks",
      maxUses: 3,
      nodeNamePattern: "gpu-*",
      labels: { zone: "a", rack: "7", "rollcall.io/group": "edge" },
      preauthorized: true,
      ephemeral: true,
    });
    const lifeMs = Date.parse(token.expireTime) - Date.parse(token.createTime);
    expect(lifeMs).toBe(7 * 86_400_000);
    const { err } = await create("--uses unlimited --ttl never");
    expect(err).toContain("is valid for any number of machines until it is revoked.");
  });

  it("should print the message, and the same for a repeated request", async () => {
    const first = await rig.run("token create --request-id r1 --output json");
    const { text } = JSON.parse(first.out);
    expect(text).toMatch(/^rcj_/);
    expect(first.err).toBe("");
    expect((await rig.run("token create --request-id r1")).out).toBe(`${text}\n`);
  });

  it.each(["--uses 0", "--uses many", "--ttl soon", "--label zone"])("should refuse %s", async (option) => {
    const { code, err } = await rig.run(`token create ${option}`, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(code).toBe(2);
    expect(err).toContain("cannot use");
  });
});

describe("token list, show and revoke", () => {
  it("should print tables, CSV and names, the newest first, with and without headings", async () => {
    const { id } = await create("--uses unlimited --ttl never");
    const newer = await create("--label zone=a --ephemeral");
    const [heading, ...rows] = (await rig.run("token list")).out.split("\n");
    expect(heading).toMatch(/^ID +STATE +USES +EXPIRES +LAST USE +NAMES +GRANTS +DESCRIPTION$/);
    expect(rows[0]).toMatch(new RegExp(`^${newer.id} +active +0 of 1 +\\d{4}-\\S+ \\S+Z +- +- +ephemeral, zone=a +-$`));
    expect(rows[1]).toMatch(new RegExp(`^${id} +active +0, unlimited +never `));
    expect((await rig.run("token list --hide-header")).out).toMatch(new RegExp(`^${newer.id} `));
    const csv = (await rig.run("token list -o csv")).out.split("\r\n");
    expect(csv[0]).toBe("id,state,uses,expires,last_use,names,grants,description");
    expect(csv[2]).toBe(`${id},ACTIVE,"0, unlimited",,,,,`);
    expect((await rig.run("token list --hide-header -o csv")).out.split("\r\n")[0]).toBe(csv[1]);
    expect((await rig.run("token list -o name")).out).toMatch(new RegExp(`^${newer.id}\n${id}\n`));
  });

  it("should show a token by its id or its text, and the machines that used it", async () => {
    const { id, text } = await create("--group edge");
    const { out } = await rig.run(`token show ${text}`);
    expect(out).toMatch(new RegExp(`^ID: +${id}\nDescription: -\nState: +active\nUses: +0 of 1\n`));
    expect(out).toMatch(/^Grants: +rollcall\.io\/group=edge$/m);
    const missing = await rig.run("token show 0123456789ab");
    expect(missing.code).toBe(1);
    expect(missing.err).toContain("join token 0123456789ab not found");
  });

  it("should revoke a token, once", async () => {
    const { id } = await create();
    expect(await rig.run(`token revoke ${id} -m leaked`)).toEqual({
      code: 0,
      out: `Ok: join token ${id} revoked\n`,
      err: "",
    });
    expect((await rig.run(`token show ${id}`)).out).toMatch(/^State: +revoked$[\s\S]*^Reason: +leaked$/m);
    const again = await rig.run(`token revoke ${id}`);
    expect(again).toMatchObject({ code: 0, out: `Ok: join token ${id} was already revoked\n` });
    expect((await rig.run(`token revoke ${id} -o json`)).out).toContain('"JOIN_TOKEN_STATE_REVOKED"');
    expect((await rig.run(`token revoke ${id} --strict`)).code).toBe(1);
  });
});
