import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JoinTokenWish, joinCommand, tokenCommand } from "../../../services/console/web/src/state/cli-command.ts";
import { processesOf } from "../../../services/rollcall/src/testing/processes.ts";
import { endProcess } from "../../../services/rollcall/src/testing/rollcall-process.ts";
import { createUpFixture, type UpFixture } from "../../../services/rollcall/src/testing/up-fixture.ts";
import { layOutCheckout } from "../../support/checkout.ts";

const WISH: JoinTokenWish = {
  description: "it's the first rack",
  uses: "3",
  ttl: "8h",
  namePattern: "*",
  group: "edge",
  labels: ["zone=a"],
  preauthorized: true,
  ephemeral: false,
};

// Copies the commands from the page of join tokens into a shell, as a person does.
describe("the commands that the console prints for a machine", () => {
  let fixture: UpFixture;
  let checkout: string;
  beforeAll(async () => {
    fixture = await createUpFixture();
    checkout = layOutCheckout(fixture.dataDirectory);
    await fixture.up("--no-agent", "--join-tokens", "strict");
  });
  afterAll(async () => {
    for (const { pid } of await processesOf(checkout)) endProcess(pid);
    await fixture.dispose();
    rmSync(checkout, { recursive: true, force: true });
  });

  const shell = (command: string) => {
    const env = { HOME: checkout, PATH: `${checkout}/bin:${process.env.PATH}`, ROLLCALL_SERVER: fixture.server };
    return execFile("sh", ["-c", command], { cwd: checkout, env });
  };
  const printed = async (command: string): Promise<string> => {
    const child = shell(`${command} 2>/dev/null`);
    let out = "";
    for await (const part of child.stdout ?? []) out += part;
    return out.trim();
  };

  it("should make a token, and join a machine with it", async () => {
    const token = await printed(tokenCommand(WISH));
    expect(token).toMatch(/^rcj_/);
    const state = `--state-dir ${checkout}/state --name joined`;
    const agent = shell(`${joinCommand("shell", `http://${fixture.server}`, token)} ${state}`);
    await fixture.client.becomes("joined", "APPROVED CONNECTED HEALTHY");
    const { node } = await fixture.client.registry.getNode({ node: "joined" });
    expect(node?.labels.map(({ key, value }) => `${key}=${value}`)).toEqual(["rollcall.io/group=edge", "zone=a"]);
    agent.kill("SIGTERM");
  });
});
