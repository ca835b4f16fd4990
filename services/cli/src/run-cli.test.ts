import { describe, expect, it } from "@jest/globals";
import { run } from "./testing/run.ts";

describe("runCli()", () => {
  it.each([
    ["nonsense", "error: unknown command 'nonsense'\n"],
    ["node lst", "error: unknown command 'lst'\n(Did you mean list?)\n"],
    ["--server", "error: option '--server <address>' argument missing\n"],
    ["node list --nonsense", "error: unknown option '--nonsense'\n"],
    ["node describe", "error: missing required argument 'node'\n"],
  ])("should answer wrong usage (%s) with exit code 2", async (line, err) => {
    expect(await run(line.split(" "))).toEqual({ code: 2, out: "", err });
  });

  it("should print help on standard output when it is asked for, and on standard error when it is needed", async () => {
    const asked = await run(["node", "list", "--help"]);
    expect(asked.code).toBe(0);
    expect(asked.out).toContain("Global Options:");
    const noun = (await run(["node", "--help"])).out;
    expect(noun).toMatch(/^ {2}list \[options\] +List nodes$/m);
    expect(noun).not.toContain("Global Options:");
    const needed = await run([]);
    expect(needed.code).toBe(2);
    expect(needed.err).toContain("Exit codes: 0 done");
  });

  it("should hand the words after a foreign verb to it, and ask it for its help", async () => {
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
    expect(seen).toEqual([["--listen", "x"], ["--help"]]);
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
      const commands = /^Commands:\n((?: {2}.*\n)+)/m.exec(out)?.[1] ?? "";
      const names = [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = ""]) => name);
      for (const name of names) if (name !== "help") await read([...words, name]);
    };
    await read([]);
    expect(folded).toEqual([]);
  });

  it("should leave the blanks at the beginning of a note", async () => {
    expect((await run(["policy", "set", "--help"])).out).toContain("\n\nExamples:\n  rollcall policy set --default");
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
