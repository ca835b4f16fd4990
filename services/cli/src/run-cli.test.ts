import { describe, expect, it } from "@jest/globals";
import { run, runAgainst, useFakeControlPlane } from "./testing/run.ts";
import { computeNode } from "./testing/sample-nodes.ts";

const server = useFakeControlPlane();

describe("runCli()", () => {
  it.each([
    ["nonsense", "error: unknown command 'nonsense'\n"],
    ["node list --nonsense", "error: unknown option '--nonsense'\n"],
    ["node describe", "error: missing required argument 'node'\n"],
  ])("should answer wrong usage (%s) with exit code 2", async (line, err) => {
    expect(await run(line.split(" "))).toEqual({ code: 2, out: "", err });
  });

  it("should print help on standard output when it is asked for, and on standard error when it is needed", async () => {
    const asked = await run(["node", "list", "--help"]);
    expect(asked.code).toBe(0);
    expect(asked.out).toContain("Global Options:");
    const needed = await run([]);
    expect(needed.code).toBe(2);
    expect(needed.err).toContain("Exit codes: 0 done");
  });

  it("should find global options before and after the verb", async () => {
    server.add(computeNode("n1"));
    const env = { ROLLCALL_TOKEN: "test-token" };
    for (const words of [
      ["--server", server.address, "node", "describe", "n1"],
      ["node", "describe", "n1", "--server", server.address],
    ]) {
      expect((await run(words, { env })).code).toBe(0);
    }
  });

  it("should say what to do when nobody listens, and when the token is missing or wrong", async () => {
    const nobody = await run(["node", "list", "--server", "127.0.0.1:1"]);
    expect(nobody.code).toBe(1);
    expect(nobody.err).toMatch(
      /^failed to list nodes: cannot reach the registry service at 127.0.0.1:1: connection refused\nhint: /,
    );
    const missing = await run(["node", "list", "--server", server.address]);
    expect(missing.err).toMatch(/^failed to list nodes: the call carries no access token\nhint: /);
    const wrong = await runAgainst(server, "node list --token x");
    expect(wrong.err).toMatch(/^failed to list nodes: the access token is unknown\nhint: /);
  });

  it("should end with 130 when it is interrupted", async () => {
    const answer = await runAgainst(server, "node list", { interrupted: AbortSignal.abort() });
    expect(answer).toEqual({ code: 130, out: "", err: "" });
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

  it("should print its version", async () => {
    expect((await run(["version"])).out).toMatch(/^rollcall \d+\.\d+\.\d+ \(Node.js 20.20.2, linux-x64\)\n$/);
    expect(JSON.parse((await run(["version", "--output", "json"])).out)).toMatchObject({
      platform: "linux-x64",
    });
  });
});
