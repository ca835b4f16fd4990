import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { EXIT_CODES } from "../../../services/cli/src/exit-codes.ts";
import { type Outcome, run, type Surroundings } from "../../../services/cli/src/testing/run.ts";
import { toForeignVerb } from "../../../services/rollcall/src/server-verb.ts";
import { SERVER_VERBS } from "../../../services/rollcall/src/server-verbs.ts";
import { createTestShell } from "../../../services/rollcall/src/testing/run-client.ts";

const JOB = "name: x\ntype: batch\nprocess: {command: [x]}\n";
const LABELS = "{kind: NodeLabels, name: n1, spec: {labels: {rack: r1}}}";

/** Valid arguments of every command that takes arguments. */
export const RIGHT_WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...["approve", "reject", "delete", "cordon", "uncordon", "undrain", "mark-unhealthy", "clear-mark", "rotate-key"],
      ...["accept-hardware", "drain", "describe", "why", "health"],
    ].map((verb) => [`node ${verb}`, "n1"]),
  ),
  ...Object.fromEntries(
    ["wait", "history", "describe", "why", "logs", "restart", "revert", "delete"].map((verb) => [`job ${verb}`, "x"]),
  ),
  ...Object.fromEntries(["show", "test", "delete"].map((verb) => [`webhook ${verb}`, "x"])),
  ...{ "node wait": "n1 --for healthy", "node ban": "n1 -m x", "node unban": "n1", "node label": "n1 a=b" },
  ...{ "job run": "job.yaml", "job stop": "x", "job scale": "x 1", "job adopt": "0123456789", run: "-- true" },
  ...{ "token create": "--description x", "token show": "x", "token revoke": "x" },
  ...{ "policy set": "--default --unhealthy-after 90s", "policy preview": "--default --unhealthy-after 90s" },
  ...{ "policy show": "--default", "policy delete": "--group x" },
  ...{ "brake freeze": "-m x", "brake release": "--now", "events republish": "--from 0" },
  ...{ "webhook set": "x --url https://receiver.example", "webhook replay": "x --from 0" },
  ...{ apply: "-f labels.yaml", diff: "-f labels.yaml" },
  ...{ "audit prune": `--through 1:${"0".repeat(64)}` },
  ...{ "access create": "x --role viewer", "access revoke": "x" },
  ...{ "config convert": "rollcall.yaml", login: "--token x", completion: "bash" },
  ...{ "context use": "x", "context delete": "x", "context rename": "x y", console: "--no-open" },
};

/** The verbs that run until they are stopped, and the verbs that work on the store. */
export const OF_SERVERS = SERVER_VERBS.map(({ name }) => name);

/** All other commands. */
export const OF_CLIENTS = Object.keys(EXIT_CODES).filter((words) => !OF_SERVERS.includes(words));

/** The exit codes for failed work, for the commands that use 1 for something else. */
export const UNDONE: Readonly<Record<string, number>> = { run: 75, diff: 3, doctor: 3, "audit verify": 3 };

/** Create a directory with the files that RIGHT_WORDS names. It exists while the tests of a file run. */
export function useCommandFiles(): { readonly folder: string } {
  let folder = "";
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "rollcall-words-"));
    writeFileSync(join(folder, "job.yaml"), JOB);
    writeFileSync(join(folder, "labels.yaml"), LABELS);
    writeFileSync(join(folder, "rollcall.yaml"), "");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return {
    get folder() {
      return folder;
    },
  };
}

/** Run a client command without a control plane. */
export function attempt(folder: string, args: readonly string[], more: Surroundings = {}): Promise<Outcome> {
  const env = { ROLLCALL_SERVER: "127.0.0.1:1", ROLLCALL_TOKEN: "x", ...more.env };
  return run(args, { cwd: folder, home: folder, ...more, env });
}

/** Run a server verb. Returns its exit codes and its standard error. */
export async function attemptServer(name: string, args: readonly string[], cwd: string) {
  const verb = SERVER_VERBS.find((one) => one.name === name);
  if (verb === undefined) throw new Error(`${name} is not a verb of a server`);
  const exits: unknown[] = [];
  const shell = createTestShell({ cwd });
  const fake: NodeJS.Process = Object.assign(Object.create(process), {
    exit: (code: number) => exits.push(code),
    // Ignore the verb's signal handlers, because they must not affect the tests' process.
    on: () => fake,
  });
  await toForeignVerb(verb, { shell, process: fake, releaseSignals: () => {} }).run(args);
  return { exits, err: shell.written() };
}
