import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { EXIT_CODES } from "../../services/cli/src/exit-codes.ts";
import { commandsIn, run } from "../../services/cli/src/testing/run.ts";
import {
  attempt,
  attemptServer,
  OF_CLIENTS,
  OF_SERVERS,
  RIGHT_WORDS,
  UNDONE,
  useCommandFiles,
} from "./support/command-words.ts";

/** The exit codes of commands without a control plane. All other commands exit with 3. */
const WITHOUT_CONTROL_PLANE: Readonly<Record<string, number>> = {
  ...UNDONE,
  // These commands fail because the context does not exist.
  ...{ logout: 1, "context use": 1, "context show": 1, "context delete": 1, "context rename": 1 },
  // doctor reports the missing control plane as a problem.
  doctor: 1,
  ...{ "config list": 0, "config default": 0, "config convert": 0, version: 0, options: 0, completion: 0 },
  ...{ "context list": 0 },
};

const files = useCommandFiles();

/** Run a command with valid arguments, without a control plane. */
function attemptRight(words: string, more: readonly string[] = [], interrupted?: AbortSignal) {
  const args = [...words.split(" "), ...more, ...(RIGHT_WORDS[words]?.split(" ") ?? [])];
  return attempt(files.folder, args, interrupted === undefined ? {} : { interrupted });
}

describe("the exit codes of every command", () => {
  it("should be documented, and no others", async () => {
    const found: string[] = [...OF_SERVERS];
    const read = async (words: readonly string[]): Promise<void> => {
      const { out } = await run([...words, "--help"]);
      const names = commandsIn(out);
      // Skip nouns, because they stand for one of their verbs. `events` is also a command.
      const isCommand = names.length === 0 || words.join(" ") === "events";
      if (words.length > 0 && isCommand) found.push(words.join(" "));
      for (const name of names) await read([...words, name]);
    };
    await read([]);
    expect(found.filter((words) => !(words in EXIT_CODES))).toEqual([]);
    expect(Object.keys(EXIT_CODES).filter((words) => !found.includes(words))).toEqual([]);
  });

  it("should mention only options that the command has, and whether --strict and --dry-run change them", async () => {
    const optionsIn = (text: string): readonly string[] => [...new Set(text.match(/--[a-z][a-z-]*/g))];
    const ofAll = optionsIn((await run(["options"])).out);
    expect(ofAll).toContain("--timeout");
    const wrong: string[] = [];
    for (const words of OF_CLIENTS) {
      const help = (await run([...words.split(" "), "--help"])).out;
      // An option's line starts with the option, while the notes below also mention options of other commands.
      const own = [...help.matchAll(/^ +(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => option);
      const { done, failed, others = {} } = EXIT_CODES[words] ?? { done: "", failed: "" };
      const mentioned = optionsIn([done, failed, ...Object.values(others)].join(" "));
      const missing = mentioned.filter((option) => !own.includes(option) && !ofAll.includes(option));
      const unsaid = ["--strict", "--dry-run"].filter((option) => own.includes(option) && !mentioned.includes(option));
      wrong.push(...[...missing, ...unsaid].map((option) => `${words} ${option}`));
    }
    expect(wrong).toEqual([]);
  });

  it.each(OF_CLIENTS)("should be 2 for wrong usage: %s", async (words) => {
    expect(await attemptRight(words, ["--no-such-option"])).toMatchObject({ code: 2, out: "" });
  });

  const NAMED = OF_CLIENTS.filter((words) => words !== "run" && /^[^-]/.test(RIGHT_WORDS[words] ?? "-"));
  it.each(NAMED)("should be 2 for an empty name: %s", async (words) => {
    const [, ...others] = RIGHT_WORDS[words]?.split(" ") ?? [];
    const { code, out, err } = await attempt(files.folder, [...words.split(" "), "", ...others]);
    expect({ code, out, err }).toEqual({
      code: 2,
      out: "",
      err: expect.stringMatching(/^the value of <.*> is empty\n$/),
    });
  });

  it("should be 2 for an empty value of an option, and not for an empty text", async () => {
    const attemptWith = (...args: string[]) => attempt(files.folder, args);
    expect(await attemptWith("job", "executions", "--node", "")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--node is empty/),
    });
    expect(await attemptWith("policy", "delete", "--group", "x", "--etag", " ")).toMatchObject({
      code: 2,
      err: expect.stringMatching(/--etag is empty/),
    });
    expect((await attemptWith("--server", "127.0.0.1:1", "job", "stop", "x", "-m", "")).code).toBe(3);
  });

  it.each(OF_CLIENTS)("should be 3 when the control plane cannot be reached: %s", async (words) => {
    const { code, err } = await attemptRight(words);
    expect({ code, err }).toEqual({ code: WITHOUT_CONTROL_PLANE[words] ?? 3, err: expect.any(String) });
    if (code === 1 || code === 3) expect(err).not.toMatch(/^error: |Usage:/);
  });

  it.each([
    ["a proxy answers", "webhook test x", (_: unknown, answer: ServerResponse) => answer.writeHead(503).end()],
    ["a proxy answers", "job wait x", (_: unknown, answer: ServerResponse) => answer.writeHead(503).end()],
    ["nothing answers in time", "webhook test x", () => {}],
    ["nothing answers in time", "node list", () => {}],
  ])("should be 3 when %s: %s", async (_, words, answer) => {
    const server = createServer(answer);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const args = ["--server", `127.0.0.1:${port}`, "--timeout", "1s", ...words.split(" ")];
    expect(await attempt(files.folder, args)).toMatchObject({ code: 3, out: "" });
    server.closeAllConnections();
    server.close();
  });

  it.each([
    ["node list", "deadline_exceeded", "DEADLINE_EXCEEDED", 3],
    ["token create", "deadline_exceeded", "DEADLINE_EXCEEDED", 3],
    ["token create", "unavailable", "STORE_UNAVAILABLE", 3],
    ["token create", "unavailable", "SERVER_SHUTTING_DOWN", 3],
    ["token create", "unavailable", "ADDED_LATER", 3],
    ["node cordon n1 n2", "unavailable", "STORE_UNAVAILABLE", 3],
    ["job stop x", "unavailable", "STORE_UNAVAILABLE", 3],
    ["diff -f labels.yaml", "unavailable", "STORE_UNAVAILABLE", 3],
    ["audit verify", "unavailable", "STORE_UNAVAILABLE", 3],
    ["run -- true", "deadline_exceeded", "DEADLINE_EXCEEDED", 75],
    // The control plane refused these calls, so it changed nothing.
    ["token create", "resource_exhausted", "OVERLOADED", 1],
    ["token create", "resource_exhausted", "TOO_MANY_CALLS", 1],
    ["policy delete --default --etag x", "aborted", "ETAG_MISMATCH", 1],
    ["job logs x", "unavailable", "LOG_UNAVAILABLE", 1],
  ])("should be 3 when it is unknown what happened, not 1: %s, %s %s", async (words, code, reason, expected) => {
    // An ErrorInfo with only its first field.
    const info = Buffer.from([10, reason.length, ...Buffer.from(reason)]).toString("base64");
    const details = [{ type: "google.rpc.ErrorInfo", value: info }];
    const server = createServer((_, answer) =>
      answer
        .writeHead(503, { "content-type": "application/json" })
        .end(JSON.stringify({ code, message: "why it failed", details })),
    );
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const done = await attempt(files.folder, ["--server", `127.0.0.1:${port}`, ...words.split(" ")]);
    expect(done).toMatchObject({ code: expected, out: "", err: expect.stringContaining("why it failed") });
    server.closeAllConnections();
    server.close();
  });

  it.each(OF_CLIENTS)("should be 130 when it is interrupted: %s", async (words) => {
    expect((await attemptRight(words, [], AbortSignal.abort())).code).toBe(130);
  });

  it.each(OF_SERVERS)("should be 2 for wrong usage: %s", async (name) => {
    expect(await attemptServer(name, ["--no-such-option"], files.folder)).toMatchObject({ exits: [2] });
  });
});
