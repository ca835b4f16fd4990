// Runs Rollcall's own agent for the scenarios, with the keeper of the checkout and a wall clock that jumps on
// request.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { type AgentConfig, agentKeys, type KeeperAccess, startAgent } from "@rollcall/agent";
import { keeperSocket, settingsDigest } from "@rollcall/keeper";
import { type Clock, createLogger, systemClock } from "@rollcall/process";
import { ROLLCALL_PROGRAM } from "../servers/rollcall.ts";

const VERSION = "0.1.0";
/** The user that executions run as, if root runs this program. */
const USER = process.getuid?.() === 0 ? "nobody" : null;
const text = { type: "string", default: "" } as const;
const { values } = parseArgs({ options: { server: text, name: text, "state-dir": text, "clock-file": text } });
const stateDirectory = resolve(values["state-dir"]);
const [host = "", port = ""] = values.server.split(":");

const clock: Clock = {
  nowMs: () => systemClock.nowMs(),
  wallMs: () => systemClock.wallMs() + wrongBy(values["clock-file"]),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};

const defaults = Object.fromEntries(Object.entries(agentKeys).map(([key, { default: value }]) => [key, value]));
const config = {
  ...defaults,
  "Compute.Server": { host, port: Number(port), scheme: undefined },
  "Compute.Name": values.name,
  "Compute.StateDir": stateDirectory,
  "Work.Executors": ["process"],
  "Work.User": USER ?? undefined,
  "Work.SameUser": USER === null,
} as unknown as AgentConfig;

const running = await startAgent({
  config,
  version: VERSION,
  clock,
  log: createLogger({ level: "info" }),
  kubernetes: null,
  keeper: keeper(),
});
await once(process, "SIGTERM");
await running.close();

function keeper(): KeeperAccess {
  const settings = {
    stateDirectory,
    directory: null,
    executors: ["process"],
    user: USER,
    userIds: null,
    users: [],
    directories: [],
    secrets: null,
    secretGrants: [],
    mayBeOwnUser: USER === null,
    dockerHost: null,
  };
  const flags = [
    "--set",
    "Work.Executors=process",
    "--set",
    "Work.UserIds=none",
    "--set",
    USER === null ? "Work.SameUser=true" : `Work.User=${USER}`,
  ];
  const words = ["keeper", "--ends-idle", "--log-file", "--state-dir", stateDirectory, ...flags];
  return {
    socketPath: keeperSocket(stateDirectory, null),
    isNeeded: true,
    expected: { version: VERSION, settingsDigest: settingsDigest(settings) },
    start: async () => {
      const options = { detached: true, stdio: "ignore" } as const;
      const child = spawn(process.execPath, [...process.execArgv, ROLLCALL_PROGRAM, ...words], options);
      await once(child, "spawn");
      child.unref();
    },
  };
}

function wrongBy(file: string): number {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return 0;
  }
}
