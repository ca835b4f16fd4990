import { describe, expect, it } from "@jest/globals";
import type { Shell, Sink } from "../shell.ts";
import { progressIn, until } from "../testing/run.ts";
import { showing, withProgress } from "./progress.ts";

function shellOn(isTerminal: boolean, env: Shell["env"] = {}) {
  const texts: string[] = [];
  const sink: Sink = {
    write: (text) => {
      texts.push(String(text));
    },
    ...{ finish: async () => {}, taken: async () => {}, isTerminal, columns: () => 40, rows: () => 24 },
  };
  const shell: Shell = {
    ...{ args: [], env, cwd: "/", home: "/", userId: 1, out: sink, err: sink, progressAfterMs: 0 },
    ...{ runsOn: { node: "26", platform: "x" }, wallMs: () => 0 },
    ...{ ask: async () => "y", interrupted: new AbortController().signal },
  };
  return { shell: withProgress(shell), given: shell, text: () => progressIn(texts.join("")) };
}

describe("withProgress()", () => {
  it("should show what a command does and for how long, and remove the line when it ends", async () => {
    const { shell, text } = shellOn(true);
    await showing(shell, "drain web-1", () => until(() => text() !== ""));
    expect(text()).toMatch(/^(\|drain web-1 \.\.\. \d+m?s)+\|$/);
  });

  it("should remove the line before anything else is written", async () => {
    const { shell, text } = shellOn(true);
    await showing(shell, "drain web-1", async () => {
      await until(() => text() !== "");
      shell.out.write("web-1 is drained\n");
    });
    expect(text()).toMatch(/\d+m?s\|web-1 is drained\n/);
  });

  it("should fit the line to the terminal, and show the outermost work", async () => {
    const { shell, text } = shellOn(true);
    const read = () => showing(shell, "read nodes", () => until(() => text() !== ""));
    await showing(shell, "x".repeat(60), read);
    expect(text()).toMatch(/^\|x{38}…\|/);
  });

  it.each<[string, boolean, Shell["env"]]>([
    ["without a terminal", false, {}],
    ["on a terminal that cannot move its cursor", true, { TERM: "dumb" }],
  ])("should show nothing %s", (_where, isTerminal, env) => {
    const { shell, given } = shellOn(isTerminal, env);
    expect(shell).toBe(given);
  });
});
