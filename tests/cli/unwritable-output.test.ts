import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { EXIT_CODES } from "../../services/cli/src/exit-codes.ts";
import type { Failure } from "../../services/cli/src/failure.ts";
import { ProcessSink } from "../../services/rollcall/src/process-sink.ts";
import { SERVER_VERBS } from "../../services/rollcall/src/server-verbs.ts";
import { runInto } from "../../services/rollcall/src/testing/rollcall-process.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

const JOB = "name: web\ntype: service\nqueueTimeout: 1h\nprocess: {command: [sleep, '60']}\n";
const LABELS = "{kind: NodeLabels, name: n1, spec: {labels: {rack: r1}}}";

/**
 * Arguments that make each command write to standard output. Commands with only `--help` here end in other ways, or
 * print what another test has to create first. Add a line for each new command.
 */
const WORDS: Readonly<Record<string, string>> = {
  "node list": "",
  "node describe": "n1",
  "node approve": "n1",
  "node reject": "n2",
  "node delete": "n3",
  "node cordon": "n1",
  "node uncordon": "n1",
  "node drain": "n1 --detach",
  "node undrain": "n1",
  "node mark-unhealthy": "n1",
  "node clear-mark": "n1",
  "node rotate-key": "n1",
  "node accept-hardware": "n1",
  "node ban": "n4 -m x",
  "node unban": "n4",
  "node label": "n1 a=b",
  "node bans": "",
  "node wait": "n1 --for disconnected",
  "node why": "n1",
  top: "",
  options: "",
  "node health": "n1",
  "node watch": "",
  "node summary": "",
  "job run": "job.yaml --detach",
  "job wait": "--help",
  "job list": "",
  "job executions": "",
  "job history": "web",
  "job owners": "",
  "job describe": "web",
  "job why": "web",
  "job logs": "--help",
  "job scale": "web 2",
  "job restart": "web",
  "job adopt": "--help",
  "job revert": "--help",
  "job stop": "web",
  "job delete": "web",
  run: "--detach --queue-timeout 1h -- true",
  "token create": "--description x",
  "token list": "",
  "token show": "--help",
  "token revoke": "--help",
  "policy set": "--default --unhealthy-after 90s",
  "policy preview": "--default --unhealthy-after 90s",
  "policy list": "",
  "policy show": "--default",
  "policy delete": "--default",
  "brake status": "",
  "brake freeze": "-m x",
  "brake release": "",
  events: "",
  "events republish": "--help",
  "webhook set": "hook --url https://receiver.example",
  "webhook list": "",
  "webhook show": "hook",
  "webhook test": "--help",
  "webhook replay": "--help",
  "webhook delete": "hook",
  apply: "-f labels.yaml",
  diff: "-f labels.yaml -o json",
  export: "",
  "audit list": "",
  "audit verify": "",
  "audit export": "",
  "audit prune": "--help",
  status: "",
  doctor: "",
  "config list": "-o json",
  "config convert": "--help",
  "config default": "--help",
  login: "--token TOKEN --context here",
  "context list": "",
  "context show": "here",
  "context use": "here",
  "context rename": "here there",
  "context delete": "there",
  logout: "--help",
  whoami: "",
  console: "--help",
  "access create": "x --role viewer",
  "access list": "",
  "access revoke": "--help",
  version: "",
  completion: "bash",
  ...Object.fromEntries(SERVER_VERBS.map(({ name }) => [name, "--help"])),
};

/**
 * The exit code for unwritable output, for commands that use 1 for something else. `doctor` still exits with 1,
 * because it finds a problem in this cluster.
 */
const UNWRITTEN: Readonly<Record<string, number>> = { run: 75, diff: 3, "audit verify": 3 };

const OF_SERVERS = SERVER_VERBS.map(({ name }) => name);
const OWN = Object.keys(WORDS).filter((words) => !OF_SERVERS.includes(words));

let full: number;

beforeAll(async () => {
  full = openSync("/dev/full", "w");
  writeFileSync(join(rig.folder, "job.yaml"), JOB);
  writeFileSync(join(rig.folder, "labels.yaml"), LABELS);
  for (const id of ["n1", "n2", "n3", "n4"]) await rig.connect(id);
});

afterAll(() => closeSync(full));

/** Run a command whose standard output is a device that is always full. */
async function attempt(command: string) {
  const interrupted = new AbortController();
  const out = new ProcessSink({
    fd: full,
    name: "standard output",
    stream: { write: () => true, on: () => process.stdout, isTTY: false, columns: 0, rows: 0 },
    onFailure: (failure: Failure) => interrupted.abort(failure),
  });
  const words = `${command} ${WORDS[command]}`.trim().replace("TOKEN", rig.token);
  return rig.run(words, { out, interrupted: interrupted.signal });
}

describe("every command whose output cannot be written", () => {
  it("should be covered by this test", () => {
    expect(Object.keys(WORDS).sort()).toEqual(Object.keys(EXIT_CODES).sort());
  });

  it.each(OWN)("should name the cause and the file, and exit with the command's code for it: %s", async (command) => {
    const { code, err } = await attempt(command);
    expect(code).toBe(UNWRITTEN[command] ?? 1);
    expect(err.trimEnd().split("\n").at(-1)).toBe("cannot write /dev/full (standard output): no space left on device");
    expect(err).not.toMatch(/^ +at |exported/m);
  });

  it.each(OF_SERVERS)("should do so as a process: %s", async (command) => {
    const { code, err } = await runInto(full, [command, "--help"]);
    expect([code, err]).toEqual([1, "cannot write /dev/full (standard output): no space left on device\n"]);
  });
});
