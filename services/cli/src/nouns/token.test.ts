import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { JoinTokenUseSchema } from "@rollcall/api/rollcall/admin/v1/join_token_pb";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { NOW_MS } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();
const ID = "0000000000a1";
const TEXT = `rcj_00000000_${ID}_secret`;

describe("token create", () => {
  it("should print the token alone, and beside it how to use it", async () => {
    const terminal = { columns: 200, rows: 50 };
    const { code, out, err } = await runAgainst(server, "token create", { terminal });
    expect([code, out]).toEqual([0, `${TEXT}\n`]);
    expect(err).toContain(`Join token ${ID} is valid for one machine until 2026-08-07 12:00:00Z.`);
    expect(err).toContain(`rollcall agent --server ${server.address} --join-token ${TEXT}\n`);
  });

  it("should keep the token out of standard error where a script reads it", async () => {
    const { out, err } = await runAgainst(server, "token create");
    expect(out).toBe(`${TEXT}\n`);
    expect(err).toContain(`rollcall agent --server ${server.address} --join-token TOKEN\n`);
    expect(err).not.toContain(TEXT);
  });

  it("should ask for what it was told to", async () => {
    const line =
      "token create --description racks --uses 3 --ttl 7d --name-pattern gpu-* --label zone=a --label rack=7=x --group edge --preauthorized --ephemeral --request-id r1";
    const { code } = await runAgainst(server, line);
    expect(code).toBe(0);
    const asked = JSON.parse(server.calls[0]?.replace("CreateJoinToken ", "") ?? "");
    expect(asked).toMatchObject({
      description: "racks",
      useLimit: { case: "maxUses", value: 3 },
      lifetime: { case: "ttl", value: { seconds: 604_800 } },
      nodeNamePattern: "gpu-*",
      labels: { zone: "a", rack: "7=x" },
      group: "edge",
      preauthorized: true,
      ephemeral: true,
      requestId: "r1",
    });
  });

  it("should take no end for an answer when it is asked for", async () => {
    const { err } = await runAgainst(server, "token create --uses unlimited --ttl never");
    expect(err).toContain("is valid for any number of machines until it is revoked.");
  });

  it("should print the message", async () => {
    const { out, err } = await runAgainst(server, "token create --output json");
    expect(JSON.parse(out)).toMatchObject({ text: TEXT, token: { id: ID } });
    expect(err).toBe("");
  });

  it.each(["--uses 0", "--uses many", "--ttl soon", "--label zone"])(
    "should take %s for wrong usage",
    async (option) => {
      const { code, err } = await runAgainst(server, `token create ${option}`);
      expect(code).toBe(2);
      expect(err).toContain("cannot use");
      expect(server.calls).toEqual([]);
    },
  );
});

describe("token list", () => {
  it("should print every page as one table", async () => {
    for (const more of ["", " --uses unlimited --ttl never", " --label zone=a --ephemeral"]) {
      await runAgainst(server, `token create${more}`);
    }
    const { out } = await runAgainst(server, "token list");
    expect(out).toBe(
      lines(
        "ID            STATE   USES          EXPIRES               LAST USE  NAMES  GRANTS             DESCRIPTION",
        "0000000000a3  ACTIVE  0 of 1        2026-08-07 12:00:00Z  -         -      ephemeral, zone=a  -",
        "0000000000a2  ACTIVE  0, unlimited  never                 -         -      -                  -",
        "0000000000a1  ACTIVE  0 of 1        2026-08-07 12:00:00Z  -         -      -                  -",
      ),
    );
  });

  it("should print CSV", async () => {
    await runAgainst(server, "token create --uses unlimited --ttl never");
    const { out } = await runAgainst(server, "token list --output csv");
    expect(out).toBe(
      'id,state,uses,expires,last_use,names,grants,description\r\n0000000000a1,ACTIVE,"0, unlimited",,,,,\r\n',
    );
  });
});

describe("token show", () => {
  it("should show the token and whom it let in", async () => {
    await runAgainst(server, "token create --group edge --label a=b");
    const time = timestampFromMs(NOW_MS);
    server.joinTokens.uses.push(create(JoinTokenUseSchema, { nodeId: "n1", keyFingerprint: "SHA256:x", time }));
    const { out } = await runAgainst(server, `token show ${ID}`);
    expect(out).toBe(
      lines(
        `ID:          ${ID}`,
        "Description: -",
        "State:       ACTIVE",
        "Uses:        0 of 1",
        "Last use:    -",
        "Expires:     2026-08-07 12:00:00Z",
        "Names:       any",
        "Grants:      a=b",
        "Created:     2026-08-06 12:00:00Z by token:admin",
        "",
        "NODE  JOINED                KEY",
        "n1    2026-08-06 12:00:00Z  SHA256:x",
      ),
    );
  });

  it("should find a token by its text, and send no more than the id", async () => {
    await runAgainst(server, "token create");
    await runAgainst(server, `token show ${TEXT}`);
    expect(server.calls.at(-1)).toBe(`GetJoinToken ${ID}`);
  });

  it("should fail for a token that is not there", async () => {
    const { code, err } = await runAgainst(server, "token show nothing");
    expect(code).toBe(1);
    expect(err).toContain("join token nothing not found");
  });
});

describe("token revoke", () => {
  it("should revoke", async () => {
    await runAgainst(server, "token create");
    const { out } = await runAgainst(server, `token revoke ${ID} -m leaked --request-id r1`);
    expect(out).toBe("Ok\n");
    expect(server.calls.at(-1)).toBe(`RevokeJoinToken ${ID} leaked r1`);
    expect((await runAgainst(server, "token list")).out).toContain("REVOKED");
  });
});
