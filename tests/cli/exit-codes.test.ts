import { describe, expect, it } from "@jest/globals";
import { EXIT_CODES } from "../../services/cli/src/exit-codes.ts";
import { run } from "../../services/cli/src/testing/run.ts";
import {
  attempt,
  attemptServer,
  OF_CLIENTS,
  OF_SERVERS,
  RIGHT_WORDS,
  UNDONE,
  useCommandFiles,
} from "./support/command-words.ts";

/** What a command exits with where nothing listens, if it is not 1. */
const WITHOUT_CONTROL_PLANE: Readonly<Record<string, number>> = {
  ...UNDONE,
  // It finds that nothing listens, which is a problem.
  doctor: 1,
  ...{ "config list": 0, "config default": 0, "config convert": 0, version: 0, completion: 0 },
  ...{ "context list": 0 },
};

const files = useCommandFiles();

/** Run a command with words that are right, where nothing listens. */
function attemptRight(words: string, more: readonly string[] = [], interrupted?: AbortSignal) {
  const args = [...words.split(" "), ...more, ...(RIGHT_WORDS[words]?.split(" ") ?? [])];
  return attempt(files.folder, args, interrupted === undefined ? {} : { interrupted });
}

describe("the exit codes of every command", () => {
  it("should be documented, and no others", async () => {
    const found: string[] = [...OF_SERVERS];
    const read = async (words: readonly string[]): Promise<void> => {
      const { out } = await run([...words, "--help"]);
      const commands = /^Commands:\n((?: {2}.*\n)+)/m.exec(out)?.[1] ?? "";
      const names = [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = ""]) => name);
      // A noun that is no command itself asks for one of its verbs.
      const isCommand = names.length === 0 || (await attemptRight(words.join(" "))).code !== 2;
      if (words.length > 0 && isCommand) found.push(words.join(" "));
      for (const name of names) if (name !== "help") await read([...words, name]);
    };
    await read([]);
    expect(found.filter((words) => !(words in EXIT_CODES))).toEqual([]);
    expect(Object.keys(EXIT_CODES).filter((words) => !found.includes(words))).toEqual([]);
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
    expect((await attemptWith("--server", "127.0.0.1:1", "job", "stop", "x", "-m", "")).code).toBe(1);
  });

  it.each(OF_CLIENTS)("should not be 0 where the control plane cannot be reached: %s", async (words) => {
    const { code, err } = await attemptRight(words);
    expect({ code, err }).toEqual({ code: WITHOUT_CONTROL_PLANE[words] ?? 1, err: expect.any(String) });
    if (code === 1) expect(err).not.toMatch(/^error: |Usage:/);
  });

  it.each(OF_CLIENTS)("should be 130 where it is interrupted: %s", async (words) => {
    expect((await attemptRight(words, [], AbortSignal.abort())).code).toBe(130);
  });

  it.each(OF_SERVERS)("should be 2 for wrong usage: %s", async (name) => {
    expect(await attemptServer(name, ["--no-such-option"], files.folder)).toMatchObject({ exits: [2] });
  });
});
