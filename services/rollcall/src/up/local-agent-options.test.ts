import { describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { localAgentOptions, programName, secondAgentCommand } from "./local-agent-options.ts";

const START = "/repo/services/rollcall/bundle/src/start.cjs";

describe("localAgentOptions()", () => {
  it("should run the same program, and pass on what concerns agents", () => {
    const options = localAgentOptions({
      shell: { env: { A: "b" }, cwd: "/repo" },
      process: {
        execPath: "/bin/node",
        execArgv: ["--x"],
        argv: ["/bin/node", START, "up"],
      },
      args: {
        file: "c.yaml",
        flags: {
          port: "1",
          "log-level": "debug",
          "Compute.Name": "it's me",
          "compute.stateDIR": "/elsewhere",
          "Listen.Host": "::",
        },
      },
      dataDirectory: "/data",
      server: "127.0.0.1:7700",
      log: silentLogger,
    });
    expect(options.command).toEqual({
      program: "/bin/node",
      args: [
        ...["--x", "--max-semi-space-size=1", START, "agent", "--config", "c.yaml"],
        ...["--log-level", "debug", "--set", "Compute.Name=it's me"],
        ...["--server", "127.0.0.1:7700", "--state-dir", "/data/agent"],
      ],
    });
    expect(options.commandForPeople).toBe(
      "bin/rollcall agent --config c.yaml --log-level debug --set 'Compute.Name=it'\\''s me' --server " +
        "127.0.0.1:7700 --state-dir /data/agent",
    );
    expect(options.env).toEqual({ MALLOC_ARENA_MAX: "1", A: "b" });
    expect(options.stateDirectory).toBe("/data/agent");
  });
});

describe("localAgentOptions() of an `up` that speaks TLS", () => {
  const argsOf = (flags: Readonly<Record<string, string>>) =>
    localAgentOptions({
      shell: { env: {}, cwd: "/repo" },
      process: { execPath: "/bin/node", execArgv: [], argv: ["/bin/node", START] },
      args: { file: undefined, flags },
      dataDirectory: "/data",
      server: "127.0.0.1:7700",
      trust: { caFile: "/data/tls/ca.pem", serverName: "rollcall.example" },
      log: silentLogger,
    }).command.args.join(" ");

  it("should configure the agent's trust, unless it is configured already", () => {
    const told = "--ca-file /data/tls/ca.pem --tls-server-name rollcall.example";
    expect(argsOf({})).toContain(`agent ${told} --server https://127.0.0.1:7700 `);
    const other = argsOf({ "compute.tls.cafile": "/mine.pem" });
    expect(other).toContain("--set compute.tls.cafile=/mine.pem");
    expect(other).not.toContain("--ca-file");
  });
});

describe("the commands printed by an `up` that was configured by its environment", () => {
  const env = {
    ROLLCALL_CONFIG: "/etc/rollcall.yaml",
    ROLLCALL_COMPUTE_LABELS: "zone=a, rack=7",
    ROLLCALL_COMPUTE_TLS_CERTFILE: "/own.pem",
    ROLLCALL_WORK_EXECUTORS: "process",
    ROLLCALL_LOG_LEVEL: "debug",
    ROLLCALL_JOIN_TOKEN: "rcj_secret",
    ROLLCALL_COMPUTE_STATEDIR: "/elsewhere",
    ROLLCALL_LISTEN_PORT: "1",
    ROLLCALL_WORK_USER: "",
    PATH: "/bin",
  };
  const input = (file?: string) => ({
    shell: { env, cwd: "/repo" },
    process: { execPath: "/bin/node", execArgv: [], argv: ["/bin/node", START] },
    args: { file, flags: { "Compute.Name": "first", "Work.Users": "batch" } },
    dataDirectory: "/data",
    server: "127.0.0.1:7700",
    trust: { caFile: "/data/tls/ca.pem", serverName: "rollcall.example" },
    log: silentLogger,
  });
  const SET =
    "ROLLCALL_COMPUTE_LABELS='zone=a, rack=7' ROLLCALL_COMPUTE_TLS_CERTFILE=/own.pem ROLLCALL_WORK_EXECUTORS=process " +
    'ROLLCALL_LOG_LEVEL=debug ROLLCALL_JOIN_TOKEN="$ROLLCALL_JOIN_TOKEN" bin/rollcall agent ';
  const TRUST = "--ca-file /data/tls/ca.pem --tls-server-name rollcall.example ";
  const SERVER = "--server https://127.0.0.1:7700 ";

  it("should have those settings, except the fixed ones and the values of secrets", () => {
    expect(localAgentOptions(input("c.yaml")).commandForPeople).toBe(
      `${SET}--config c.yaml --set Compute.Name=first --set Work.Users=batch ${TRUST}${SERVER}--state-dir /data/agent`,
    );
    expect(localAgentOptions(input()).commandForPeople).toMatch(/^ROLLCALL_CONFIG=\/etc\/rollcall\.yaml ROLLCALL_/);
  });

  it("should run a second agent in the same way, under another name", () => {
    expect(secondAgentCommand(input("c.yaml"))).toBe(
      `${SET}--config c.yaml --set Work.Users=batch ${SERVER}${TRUST}--name second --state-dir /data/second`,
    );
  });
});

describe("programName()", () => {
  it.each([
    [START, "/repo", "bin/rollcall"],
    [START, "/repo/docs", "rollcall"],
    ["/usr/lib/rollcall/bin/rollcall.cjs", "/usr", "rollcall"],
    ["/repo/services/rollcall/src/main.ts", "/repo", "rollcall"],
  ])("should call %s from %s %s", (entry, cwd, name) => {
    expect(programName({ argv: ["node", entry] }, cwd)).toBe(name);
  });
});
