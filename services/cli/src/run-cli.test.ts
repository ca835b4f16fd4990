import { describe, expect, it } from "@jest/globals";
import { commandsIn, run } from "./testing/run.ts";

describe("runCli()", () => {
  it.each([
    ["nonsense", "error: unknown command 'nonsense'\n"],
    ["node lst", "error: unknown command 'lst'\n(Did you mean one of list, ls?)\n"],
    ["--server", "error: option '--server <address>' argument missing\n"],
    ["node list --nonsense", "error: unknown option '--nonsense'\n"],
    [
      "node why --id n1",
      "error: unknown option '--id'\nhint: give the name without an option: `rollcall node why <node>`\n",
    ],
    [
      "node list --force",
      "error: unknown option '--force'\nhint: it asks nothing, so nothing has to be confirmed: leave the option out\n",
    ],
    ["node approve n1 --force", "error: unknown option '--force'\nhint: use `--yes`\n"],
    ["node describe", "error: missing required argument 'node'\n"],
  ])("should answer wrong usage (%s) with exit code 2", async (line, err) => {
    expect(await run(line.split(" "))).toEqual({ code: 2, out: "", err });
  });

  it("should print requested help on standard output, and other help on standard error", async () => {
    const asked = await run(["node", "list", "--help"]);
    expect(asked.code).toBe(0);
    expect(asked.out).toMatch(/^Examples:\n {2}rollcall node list[\s\S]*^Options:\n/m);
    expect(asked.out).not.toContain("--server <address>");
    expect((await run(["options"])).out).toContain("--server <address>");
    const noun = (await run(["node", "--help"])).out;
    expect(noun).toMatch(/^ {2}list\|ls \[options\] +List nodes$/m);
    const needed = await run([]);
    expect(needed.code).toBe(2);
    expect(needed.err).toContain("Exit codes: 0 done");
  });

  it("should pass the arguments of a foreign verb to it, and get its help from it", async () => {
    const seen: string[][] = [];
    const verbs = [
      {
        name: "up",
        usage: "<what>",
        description: "run everything",
        run: async (args: readonly string[]) => {
          seen.push([...args]);
          return 7;
        },
        complete: async () => [],
      },
    ];
    expect((await run(["up", "--listen", "x"], { parts: { verbs } })).code).toBe(7);
    expect((await run(["help", "up"], { parts: { verbs } })).code).toBe(7);
    expect((await run(["--server", "y", "up", "--listen", "x"], { parts: { verbs } })).code).toBe(7);
    expect(seen).toEqual([["--listen", "x"], ["--help"], ["--listen", "x", "--server", "y"]]);
    expect((await run(["--help"], { parts: { verbs } })).out).toMatch(/up <what> +run everything/);
  });

  it("should wrap help to the terminal, and to 80 columns without one", async () => {
    for (const columns of [60, 0]) {
      const terminal = columns === 0 ? {} : { terminal: { columns, rows: 24 } };
      for (const line of ["--help", "events --help", "policy set --help", "node label --help"]) {
        const { code, out } = await run(line.split(" "), terminal);
        expect(code).toBe(0);
        const folded = out.split("\n").filter((text) => !text.startsWith(" ") && text.length > (columns || 80));
        expect(folded).toEqual([]);
      }
    }
    const { out } = await run(["--help"], { env: { COLUMNS: "120" } });
    expect(Math.max(...out.split("\n").map((text) => text.length))).toBeGreaterThan(80);
  });

  it("should keep every line of every command's help within 80 columns, examples too", async () => {
    const folded: string[] = [];
    const read = async (words: readonly string[]): Promise<void> => {
      const { code, out } = await run([...words, "--help"]);
      expect(code).toBe(0);
      folded.push(...out.split("\n").filter((text) => text.length > 80));
      for (const name of commandsIn(out)) await read([...words, name]);
    };
    await read([]);
    expect(folded).toEqual([]);
  });

  it("should keep the blanks at the start of a note", async () => {
    expect((await run(["policy", "set", "--help"])).out).toContain("\n\nExamples:\n  rollcall policy set --group");
    const brake = (await run(["brake", "status", "--help"])).out;
    expect(brake).toMatch(/^ {2}NORMAL {3}each/m);
    expect(brake).toMatch(/^ {2}PARTIAL {2}more/m);
  });

  it("should print its version", async () => {
    expect((await run(["version"])).out).toMatch(/^rollcall \d+\.\d+\.\d+ \(Node.js 26.12.1, linux-x64\)\n$/);
    expect(await run(["--version"])).toEqual({
      code: 0,
      out: expect.stringMatching(/^rollcall \d+\.\d+\.\d+\n$/),
      err: "",
    });
    expect(JSON.parse((await run(["version", "--output", "json"])).out)).toMatchObject({
      platform: "linux-x64",
    });
  });
});
