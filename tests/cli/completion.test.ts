import { afterEach, describe, expect, it } from "@jest/globals";
import { addNode } from "../../libs/testkit/src/index.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
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
      "status login console node top job run policy brake events webhook apply diff export token audit logout whoami " +
      "access context serve doctor config version options completion";
    expect(await complete("")).toEqual(nouns.split(" "));
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

  it("should offer node ids for node arguments", async () => {
    for (const id of ["n1", "n2", "other"]) await addNode(rig.store, id);
    expect(await complete("node", "approve", "n")).toEqual(["n1", "n2"]);
    expect(await complete("node", "reject", "-m", "why", "o")).toEqual(["other"]);
    expect(await complete("node", "approve", "n1", "")).toEqual(["n2", "other"]);
    expect(await complete("node", "describe", "n1", "")).toEqual([]);
    expect(await complete("node", "status", "o")).toEqual(["other"]);
    expect(await complete("policy", "show", "--node", "o")).toEqual(["other"]);
  });

  it("should offer the names that options and arguments take", async () => {
    await rig.register("n1", { ...INFO, labels: { zone: "a" } });
    await rig.run("webhook set ops --url https://ops.example/hook");
    await rig.run("policy set --group gpus --selector gpu --unhealthy-after 2m");
    await rig.run("token create --description rack-7");
    const [joinToken = ""] = (await rig.run("token list -q")).out.split("\n");
    const [accessToken = ""] = (await rig.run("access list -q")).out.split("\n");
    expect(await complete("node", "list", "--selector", "zo")).toEqual(["zone=a"]);
    expect(await complete("webhook", "show", "o")).toEqual(["ops"]);
    expect(await complete("access", "create", "o")).toEqual([]);
    expect(await complete("policy", "show", "--group", "g")).toEqual(["gpus"]);
    expect(await complete("policy", "set", "--unset", "unhealthy-after,heart")).toEqual([
      "unhealthy-after,heartbeat-interval",
    ]);
    expect(await complete("brake", "freeze", "--group", "cl")).toEqual(["cluster"]);
    expect(await complete("token", "revoke", "")).toEqual([joinToken]);
    expect(await complete("access", "revoke", accessToken.slice(0, 6))).toEqual([accessToken]);
    expect(await complete("events", "--actor", `token:${accessToken.slice(0, 6)}`)).toEqual([`token:${accessToken}`]);
    expect(await complete("audit", "list", "--method", "Approve")).toEqual(["ApproveNode"]);
    expect(await complete("audit", "list", "--outcome", "ROLE_TOO")).toEqual(["ROLE_TOO_LOW"]);
    expect(await complete("node", "wait", "n1", "--for", "dr")).toEqual(["draining", "drained"]);
    expect(await complete("node", "list", "--sort-by", "cr")).toEqual(["created"]);
    expect(await complete("job", "delete", "--states", "")).toEqual(["stopped", "completed", "failed"]);
  });

  it("should be silent when there is no answer", async () => {
    const env = { ROLLCALL_SERVER: "127.0.0.1:1" };
    expect(await rig.run(["__complete", "node", "approve", ""], { env })).toEqual({ code: 0, out: "", err: "" });
  });

  it("should complete the services and flags of server verbs", async () => {
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
