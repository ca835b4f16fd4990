import { afterEach, describe, expect, it } from "@jest/globals";
import { addNode } from "../../libs/testkit/src/index.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

afterEach(() => rig.removeNodes());

async function complete(...words: readonly string[]): Promise<readonly string[]> {
  const { code, out } = await rig.run(["__complete", ...words], {
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
    const nouns =
      "serve node job run token policy brake events webhook apply diff export audit status doctor config login " +
      "logout whoami console access context";
    expect(await complete("")).toEqual([...nouns.split(" "), "version", "completion"]);
    expect(await complete("node", "un")).toEqual(["uncordon", "undrain", "unban"]);
    expect(await complete("node", "mark")).toEqual(["mark-unhealthy"]);
    expect(await complete("--output", "json", "token", "r")).toEqual(["revoke"]);
  });

  it("should offer values however they are joined to their option", async () => {
    const types = ["node.key.rotation.required", "node.key.offered", "node.key.rotated"];
    expect(await complete("events", "--type", "node.k")).toEqual(types);
    expect(await complete("events", "--type=node.k")).toEqual(types.map((it) => `--type=${it}`));
    expect(await complete("events", "--type", "=", "node.k")).toEqual(types);
    expect(await complete("events", "-o", "")).toEqual(["table", "wide", "name", "json", "yaml", "csv"]);
    expect(await complete("node", "list", "--type", "c")).toEqual(["compute", "control-plane"]);
  });

  it("should offer options, the global ones too", async () => {
    const filters = ["approval", "status", "type", "scheduling", "connection"].map((name) => `--filter-${name}`);
    expect(await complete("node", "list", "--filter")).toEqual(filters);
    expect(await complete("node", "list", "--ty")).toEqual(["--type"]);
    expect(await complete("node", "describe", "n1", "--out")).toEqual(["--output"]);
    expect(await complete("node", "cordon", "--str")).toEqual(["--strict"]);
  });

  it("should offer the words that an option takes, also after a comma", async () => {
    expect(await complete("node", "list", "--filter-approval", "p")).toEqual(["pending"]);
    expect(await complete("--output", "j")).toEqual(["json"]);
    expect(await complete("node", "list", "--show", "labels,ca")).toEqual(["labels,capacity"]);
    expect(await complete("node", "list", "--labels", "")).toEqual([]);
  });

  it("should offer node ids where a node is wanted", async () => {
    for (const id of ["n1", "n2", "other"]) await addNode(rig.store, id);
    expect(await complete("node", "approve", "n")).toEqual(["n1", "n2"]);
    expect(await complete("node", "reject", "-m", "why", "o")).toEqual(["other"]);
    expect(await complete("node", "approve", "n1", "")).toEqual(["n2", "other"]);
    expect(await complete("node", "describe", "n1", "")).toEqual([]);
    expect(await complete("node", "status", "o")).toEqual(["other"]);
    expect(await complete("policy", "show", "--node", "o")).toEqual(["other"]);
  });

  it("should be silent when there is no answer", async () => {
    const env = { ROLLCALL_SERVER: "127.0.0.1:1" };
    expect(await rig.run(["__complete", "node", "approve", ""], { env })).toEqual({ code: 0, out: "", err: "" });
  });

  it("should leave the words of other parts to them", async () => {
    expect(await complete("serve", "h")).toEqual(["health"]);
    expect(await complete("serve", "health", "--")).toEqual(["--listen"]);
  });
});

describe("completion <shell>", () => {
  it.each(["bash", "zsh", "fish"])("should print a script for %s", async (shell) => {
    const { code, out } = await rig.run(`completion ${shell}`);
    expect(code).toBe(0);
    expect(out).toContain("__complete");
  });

  it("should refuse other shells", async () => {
    expect((await rig.run("completion tcsh")).err).toBe(
      `cannot use 'tcsh' as shell value, should be one of: ["bash" "zsh" "fish"]\n`,
    );
  });
});
