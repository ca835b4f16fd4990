import { describe, expect, it } from "@jest/globals";
import { EXIT_CODES } from "../exit-codes.ts";
import { EXAMPLES } from "./examples.ts";

/**
 * Commands without examples in this file. The commands that the executable adds have their own help. The argument
 * of `audit prune` does not fit a line.
 */
const WITHOUT = ["up", "demo", "serve", "migrate", "backup", "restore", "agent", "keeper", "audit prune"];

describe("the examples of help", () => {
  it("should show how each command is used", () => {
    const commands = Object.keys(EXIT_CODES).filter((words) => !WITHOUT.includes(words));
    expect(commands.filter((words) => !(words in EXAMPLES))).toEqual([]);
    expect(Object.keys(EXAMPLES).filter((words) => !commands.includes(words))).toEqual([]);
    for (const [words, lines] of Object.entries(EXAMPLES)) {
      expect(lines.filter((line) => line !== words && !line.startsWith(`${words} `))).toEqual([]);
    }
  });
});
