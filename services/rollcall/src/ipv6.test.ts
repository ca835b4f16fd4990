import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { runCli } from "@rollcall/cli";
import { until } from "@rollcall/testkit/time";
import { createTestShell } from "./testing/run-client.ts";
import { createUpFixture, type UpFixture } from "./testing/up-fixture.ts";

let fixture: UpFixture;
beforeEach(async () => {
  fixture = await createUpFixture();
});
afterEach(() => fixture.dispose());

/** Run a verb with this environment. */
async function client(line: string, env: Readonly<Record<string, string>>) {
  const shell = createTestShell({ args: line.split(" "), env });
  const configuration = {
    list: async () => ({ settings: [], problems: [], warnings: [] }),
    defaultYaml: async () => "",
    convert: async () => ({ settings: [], leftAside: [], yaml: "" }),
  };
  return { code: await runCli(shell, { verbs: [], configuration }), text: shell.written() };
}

describe("a control plane on an IPv6 address", () => {
  it("should accept agents and clients at the addresses that it prints", async () => {
    await fixture.up("--tls", "--listen", "[::1]", "--set", "Compute.Name=here");
    const own = { ROLLCALL_DATA_DIR: fixture.dataDirectory };
    const address = `[::1]:${fixture.server.split(":")[1]}`;

    const { text } = await client("token create", own);
    const [flags = ""] = /--server \S+ --ca-fingerprint sha256:[0-9a-f]{64}/.exec(text) ?? [];
    expect(flags).toContain(`--server https://${address} `);
    const agent = fixture.agent("second", ...flags.split(" "));
    const { endpoint } = await agent.logged("connected");
    expect(endpoint).toMatch(/^\[::1\]:\d+$/);
    await until("both are healthy", async () => {
      const listed = (await client("node list --output csv", own)).text;
      return ["here", "second"].every((id) => new RegExp(`^${id},.*HEALTHY.*,CONNECTED`, "m").test(listed));
    });

    const elsewhere = {
      ROLLCALL_DATA_DIR: join(fixture.dataDirectory, "missing"),
      XDG_CONFIG_HOME: join(fixture.dataDirectory, "config"),
    };
    const token = join(fixture.dataDirectory, "admin-token");
    const login = await client(`login ${flags} --token-file ${token}`, elsewhere);
    expect(login).toMatchObject({ code: 0, text: expect.stringContaining("context 0::1") });
    expect((await client("node list", elsewhere)).text).toContain("second");
  });
});
