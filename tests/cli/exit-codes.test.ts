import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { EXIT_CODES } from "../../services/cli/src/exit-codes.ts";
import { type Outcome, run } from "../../services/cli/src/testing/run.ts";
import { toForeignVerb } from "../../services/rollcall/src/server-verb.ts";
import { SERVER_VERBS } from "../../services/rollcall/src/server-verbs.ts";
import { createTestShell } from "../../services/rollcall/src/testing/run-client.ts";

const JOB = "name: x\ntype: batch\nprocess: {command: [x]}\n";
const LABELS = "{kind: NodeLabels, name: n1, spec: {labels: {rack: r1}}}";

/** Words with which a command is right. Those of every command that takes any. */
const WORDS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...["approve", "reject", "delete", "cordon", "uncordon", "undrain", "mark-unhealthy", "clear-mark", "rotate-key"],
      ...["accept-hardware", "drain", "describe", "why", "health"],
    ].map((verb) => [`node ${verb}`, "n1"]),
  ),
  ...Object.fromEntries(["wait", "history", "describe", "why", "logs", "restart"].map((verb) => [`job ${verb}`, "x"])),
  ...Object.fromEntries(["show", "test", "delete"].map((verb) => [`webhook ${verb}`, "x"])),
  ...{ "node ban": "n1 -m x", "node unban": "n1", "node label": "n1 a=b" },
  ...{ "job run": "job.yaml", "job stop": "x", "job scale": "x 1", "job adopt": "0123456789", run: "-- true" },
  ...{ "token create": "--description x", "token show": "x", "token revoke": "x" },
  ...{ "policy set": "--default --unhealthy-after 90s", "policy preview": "--default --unhealthy-after 90s" },
  ...{ "policy show": "--default", "policy delete": "--group x" },
  ...{ "brake freeze": "-m x", "brake release": "--now", "events republish": "--from 0" },
  ...{ "webhook set": "x --url https://receiver.example", "webhook replay": "x --from 0" },
  ...{ apply: "-f labels.yaml", diff: "-f labels.yaml" },
  ...{ "audit prune": `--through 1:${"0".repeat(64)}` },
  ...{ "access create": "x --role viewer", "access revoke": "x" },
  ...{ "config convert": "absent.yaml", login: "--token x", completion: "bash" },
  ...{ "context use": "x", "context delete": "x", "context rename": "x y", console: "--no-open" },
};

/** What a command exits with where nothing listens, if it is not 1. */
const WITHOUT_CONTROL_PLANE: Readonly<Record<string, number>> = {
  ...{ run: 75, diff: 3 },
  ...{ "config list": 0, "config default": 0, "config convert": 0, version: 0, completion: 0 },
  ...{ "context list": 0 },
};

const OF_SERVERS = SERVER_VERBS.map(({ name }) => name);
const OWN = Object.keys(EXIT_CODES).filter((words) => !OF_SERVERS.includes(words));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rollcall-exit-codes-"));
  writeFileSync(join(folder, "job.yaml"), JOB);
  writeFileSync(join(folder, "labels.yaml"), LABELS);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Run a command with words that are right, where nothing listens. */
function attempt(words: string, more: readonly string[] = [], interrupted?: AbortSignal): Promise<Outcome> {
  const args = [...words.split(" "), ...more, ...(WORDS[words]?.split(" ") ?? [])];
  const env = { ROLLCALL_SERVER: "127.0.0.1:1", ROLLCALL_TOKEN: "x" };
  return run(args, { env, cwd: folder, home: folder, ...(interrupted === undefined ? {} : { interrupted }) });
}

describe("the exit codes of every command", () => {
  it("should be documented, and no others", async () => {
    const found: string[] = [...OF_SERVERS];
    const read = async (words: readonly string[]): Promise<void> => {
      const { out } = await run([...words, "--help"]);
      const commands = /^Commands:\n((?: {2}.*\n)+)/m.exec(out)?.[1] ?? "";
      const names = [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = ""]) => name);
      // A noun that is no command itself asks for one of its verbs.
      const isCommand = names.length === 0 || (await attempt(words.join(" "))).code !== 2;
      if (words.length > 0 && isCommand) found.push(words.join(" "));
      for (const name of names) if (name !== "help") await read([...words, name]);
    };
    await read([]);
    expect(found.filter((words) => !(words in EXIT_CODES))).toEqual([]);
    expect(Object.keys(EXIT_CODES).filter((words) => !found.includes(words))).toEqual([]);
  });

  it.each(OWN)("should be 2 for wrong usage: %s", async (words) => {
    expect(await attempt(words, ["--no-such-option"])).toMatchObject({ code: 2, out: "" });
  });

  const NAMED = OWN.filter((words) => words !== "run" && /^[^-]/.test(WORDS[words] ?? "-"));
  it.each(NAMED)("should be 2 for an empty name: %s", async (words) => {
    const [, ...others] = WORDS[words]?.split(" ") ?? [];
    const { code, out, err } = await run([...words.split(" "), "", ...others], { cwd: folder, home: folder });
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^the value of <.*> is empty\n$/),
    });
  });

  it("should be 2 for an empty value of an option, and not for an empty text", async () => {
    const attemptWith = (...args: string[]) => run(args, { env: { ROLLCALL_TOKEN: "x" }, cwd: folder, home: folder });
    expect(await attemptWith("job", "executions", "--node", "")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--node is empty/),
    });
    expect(await attemptWith("policy", "delete", "--group", "x", "--etag", " ")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--etag is empty/),
    });
    expect((await attemptWith("--server", "127.0.0.1:1", "job", "stop", "x", "-m", "")).code).toBe(1);
  });

  it("should be 3 for a diff that fails by a fault of the system, since 1 says that something differs", async () => {
    const unreadable = join(folder, "folder.token");
    mkdirSync(unreadable);
    const { code } = await run(["diff", "-f", "labels.yaml", "--token-file", unreadable], {
      cwd: folder,
      home: folder,
    });
    expect(code).toBe(3);
  });

  it.each(OWN)("should not be 0 where the control plane cannot be reached: %s", async (words) => {
    const { code, err } = await attempt(words);
    expect({ code, err }).toEqual({ code: WITHOUT_CONTROL_PLANE[words] ?? 1, err: expect.any(String) });
    if (code === 1) expect(err).not.toMatch(/^error: |Usage:/);
  });

  it.each(OWN)("should be 130 where it is interrupted: %s", async (words) => {
    expect((await attempt(words, [], AbortSignal.abort())).code).toBe(130);
  });

  it.each(SERVER_VERBS)("should be 2 for wrong usage: $name", async (verb) => {
    const exits: unknown[] = [];
    const shell = createTestShell();
    const fake = Object.assign(Object.create(process) as NodeJS.Process, {
      exit: (code: number) => {
        exits.push(code);
        return code as never;
      },
    });
    const foreign = toForeignVerb(verb, { shell, process: fake, releaseSignals: () => {} });
    expect(await foreign.run(["--no-such-option"])).toBe(2);
    expect(exits).toEqual([2]);
  });
});
