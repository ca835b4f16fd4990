import { describe, expect, it } from "@jest/globals";
import { run, runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

async function complete(...words: readonly string[]): Promise<readonly string[]> {
  const { code, out } = await run(["__complete", ...words], {
    env: { ROLLCALL_SERVER: server.address, ROLLCALL_TOKEN: "test-token" },
    parts: {
      verbs: [
        {
          name: "serve",
          usage: "<service>",
          description: "run one service",
          run: async () => 0,
          complete: async (given) => (given.length === 1 ? ["registry", "health", "admin"] : ["--listen"]),
        },
      ],
    },
  });
  expect(code).toBe(0);
  return out
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split("\t")[0] ?? "");
}

describe("completion", () => {
  it("should offer commands", async () => {
    expect(await complete("")).toEqual([
      "serve",
      "node",
      "token",
      "policy",
      "brake",
      "events",
      "audit",
      "status",
      "config",
      "login",
      "logout",
      "whoami",
      "access",
      "context",
      "version",
      "completion",
    ]);
    expect(await complete("node", "un")).toEqual(["uncordon", "unban"]);
    expect(await complete("node", "mark")).toEqual(["mark-unhealthy"]);
  });

  it("should offer values however they are joined to their option", async () => {
    const types = ["node.key.rotation.required", "node.key.offered", "node.key.rotated"];
    expect(await complete("events", "--type", "node.k")).toEqual(types);
    expect(await complete("events", "--type=node.k")).toEqual(types.map((it) => `--type=${it}`));
    expect(await complete("events", "--type", "=", "node.k")).toEqual(types);
    expect(await complete("events", "--output", "=")).toEqual(["table", "wide", "name", "json", "yaml", "csv"]);
  });

  it("should offer options, the global ones too", async () => {
    expect(await complete("node", "list", "--filter")).toEqual([
      "--filter-approval",
      "--filter-status",
      "--filter-type",
    ]);
    expect(await complete("node", "describe", "n1", "--out")).toEqual(["--output"]);
  });

  it("should offer the words that an option takes, also after a comma", async () => {
    expect(await complete("node", "list", "--filter-approval", "p")).toEqual(["pending"]);
    expect(await complete("--output", "j")).toEqual(["json"]);
    expect(await complete("node", "list", "--show", "labels,ca")).toEqual(["labels,capacity"]);
    expect(await complete("node", "list", "--labels", "")).toEqual([]);
  });

  it("should offer node ids where a node is wanted", async () => {
    server.add(computeNode("n1"), computeNode("n2"), computeNode("other"));
    expect(await complete("node", "approve", "n")).toEqual(["n1", "n2"]);
    expect(await complete("node", "reject", "-m", "why", "o")).toEqual(["other"]);
    expect(await complete("node", "approve", "n1", "")).toEqual(["n2", "other"]);
    expect(await complete("node", "describe", "n1", "")).toEqual([]);
  });

  it("should read on after short pages", async () => {
    server.add(...["n1", "n2", "n3"].map((id) => computeNode(id)));
    server.mostOfPage = 1;
    expect(await complete("node", "approve", "n")).toEqual(["n1", "n2", "n3"]);
  });

  it("should be silent when nobody answers", async () => {
    const { code, out, err } = await run(["__complete", "node", "approve", ""], {
      env: { ROLLCALL_SERVER: "127.0.0.1:1" },
    });
    expect({ code, out, err }).toEqual({ code: 0, out: "", err: "" });
  });

  it("should leave the words of other parts to them", async () => {
    expect(await complete("serve", "h")).toEqual(["health"]);
    expect(await complete("serve", "health", "--")).toEqual(["--listen"]);
  });
});

describe("completion <shell>", () => {
  it.each(["bash", "zsh", "fish"])("should print a script for %s", async (shell) => {
    const { code, out } = await runAgainst(server, `completion ${shell}`);
    expect(code).toBe(0);
    expect(out).toContain("__complete");
  });

  it("should refuse other shells", async () => {
    expect((await runAgainst(server, "completion tcsh")).err).toBe(
      `cannot use 'tcsh' as shell value, should be one of: ["bash" "zsh" "fish"]\n`,
    );
  });
});
