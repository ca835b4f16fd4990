import { describe, expect, it } from "@jest/globals";
import { tryCommand } from "./try-command.ts";

const env = { PATH: "/usr/bin:/bin", WORD: "yes" };

describe("tryCommand()", () => {
  it.each([
    [["sh", "-c", '[ "$WORD" = yes ]'], 30_000, ""],
    [["sh", "-c", "exit 3"], 30_000, "the command ended with 3"],
    [["sh", "-c", "kill -KILL $$"], 30_000, "the command ended with SIGKILL"],
    [["no-such-program"], 30_000, "the command ended with 127"],
    [["sleep", "1000"], 50, "its command took longer than 50 ms"],
  ])("should run %j", async (argv, timeoutMs, message) => {
    const result = await tryCommand({ argv, env, directory: "/" }, { timeoutMs, cgroups: [], words: [] });
    expect(result).toEqual({ passed: message === "", message });
  });
});
