import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { loadConfig } from "../libs/config/src/index.ts";
import { agentKeys, checkAgentConfig } from "../services/agent/src/config.ts";
import { joinCommand } from "../services/console/web/src/state/cli-command.ts";
import { workspaceRoot } from "./support/workspace.ts";

const TOKEN = "rcj_it's";

// Runs the lines in a shell, on a copy of the file that the package installs.
describe("the lines that the console prints for a machine with the service", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "rollcall-console-join-"));
    writeFileSync(join(folder, "systemctl"), `#!/bin/sh\necho "$@" >> '${folder}/calls'\n`, { mode: 0o755 });
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const run = (server: string) => {
    const lines = joinCommand("service", server, TOKEN)
      .replaceAll("/etc/rollcall/", `${folder}/`)
      .replaceAll("-g rollcall-agent", `-g ${userInfo().gid}`);
    execFileSync("sh", ["-ec", lines], { env: { PATH: `${folder}:${process.env.PATH}` } });
  };
  const loaded = () => {
    const file = { name: "agent.yaml", text: readFileSync(join(folder, "agent.yaml"), "utf8") };
    const result = loadConfig({ keys: agentKeys, file, check: checkAgentConfig });
    if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join("; "));
    return result.config.values;
  };

  it.each([
    ["https://rollcall.example", { scheme: "https", host: "rollcall.example", port: 443 }],
    ["https://rollcall.example:7700", { scheme: "https", host: "rollcall.example", port: 7700 }],
    ["http://10.0.0.7", { scheme: "http", host: "10.0.0.7", port: 80 }],
    ["https://[2001:db8::1]:7700", { scheme: "https", host: "2001:db8::1", port: 7700 }],
  ])("should configure the agent to join %s with the token", (server, address) => {
    copyFileSync(join(workspaceRoot, "deploy/config/agent.yaml"), join(folder, "agent.yaml"));
    run(server);
    expect(loaded()).toMatchObject({
      "Compute.Server": address,
      "Compute.JoinTokenFile": join(folder, "join-token"),
      "Compute.StateDir": "/var/lib/rollcall-agent",
    });
    expect(readFileSync(join(folder, "join-token"), "utf8")).toBe(TOKEN);
    expect(statSync(join(folder, "join-token")).mode & 0o777).toBe(0o640);
  });

  it("should replace settings of the file, dotted or in their section, and restart a running agent", () => {
    const before = "Compute:\n  Server: old:7700\n  JoinTokenFile: /old\n  StateDir: /state\n";
    writeFileSync(join(folder, "agent.yaml"), before);
    rmSync(join(folder, "calls"), { force: true });
    run("https://one.example");
    run("https://two.example");
    const server = { scheme: "https", host: "two.example", port: 443 };
    expect(loaded()).toMatchObject({ "Compute.Server": server, "Compute.StateDir": "/state" });
    const calls = ["enable rollcall-agent", "restart rollcall-agent"];
    expect(readFileSync(join(folder, "calls"), "utf8").trim().split("\n")).toEqual([...calls, ...calls]);
  });
});
