import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { ErrorReason } from "@rollcall/api/rollcall/node/v1/error_reason_pb";
import { withProgress } from "../../output/progress.ts";
import { lines, progressIn, until } from "../../testing/run.ts";
import { computeNode } from "../../testing/sample-nodes.ts";
import { chooseNodes } from "../selection.ts";
import { changeMany, type ManyAnswer, type ManyWork } from "./change-many.ts";

function captured(isTerminal: boolean) {
  const texts: string[] = [];
  const write = (text: string) => {
    texts.push(text);
  };
  return {
    texts,
    sink: { write, finish: async () => {}, taken: async () => {}, isTerminal, columns: () => 80, rows: () => 24 },
  };
}

function shellOf(isTerminal = false) {
  const [out, err] = [captured(isTerminal), captured(isTerminal)];
  const shell = {
    ...{ args: [], env: {}, cwd: "/", home: "/", userId: 1 },
    ...{ runsOn: { node: "20", platform: "x" }, wallMs: () => 0, ask: null },
    ...{ out: out.sink, err: err.sink, interrupted: new AbortController().signal },
  };
  return { shell, out: () => out.texts.join(""), err: () => err.texts.join("") };
}

function work(call: ManyWork["call"]): ManyWork {
  const choice = chooseNodes([], { all: true });
  if (choice.kind !== "many") throw new Error("all nodes are many");
  const how = { yes: true, dryRun: false, strict: false, format: "table", isAlready: null } as const;
  return { verb: "cordon", selector: choice.selector, requestId: "", ...how, call };
}

function page(id: string, nextPageToken: string): ManyAnswer {
  const result = { case: "node", value: computeNode(id) } as const;
  return { outcomes: [create(NodeOutcomeSchema, { nodeId: id, result })], nextPageToken };
}

describe("changeMany()", () => {
  it("should report the nodes that were changed before a failure", async () => {
    const { shell, out, err } = shellOf();
    const call: ManyWork["call"] = async ({ pageToken }) => {
      if (pageToken === "") return page("n1", "more");
      throw new Error("the line is cut");
    };
    await expect(changeMany(shell, work(call))).rejects.toThrow("the line is cut");
    expect(out()).toBe(lines("NODE  OUTCOME", "n1    Ok"));
    expect(err()).toBe("stopped after 1 node; run the command again for the rest\n");
  });

  it("should name refused nodes on standard error if standard output has only names", async () => {
    const { shell, out, err } = shellOf();
    const refusal = { reason: ErrorReason.NODE_NOT_FOUND, message: "node n9 not found", metadata: { node: "n9" } };
    const refused = create(NodeOutcomeSchema, { nodeId: "n9", result: { case: "refusal", value: refusal } });
    const { outcomes } = page("n1", "");
    const call: ManyWork["call"] = async () => ({ outcomes: [refused, ...outcomes], nextPageToken: "" });
    await expect(changeMany(shell, { ...work(call), format: "name" })).rejects.toThrow("failed to cordon 1 of 2 nodes");
    expect([out(), err()]).toEqual(["n1\n", "n9: node n9 not found\n"]);
  });

  it("should show its progress on a terminal, and clear it", async () => {
    const { shell, out, err } = shellOf(true);
    const answers: ManyWork["call"] = async ({ pageToken }) => {
      if (pageToken === "") return page("n1", "more");
      await until(() => err().includes("so far"));
      return page("n2", "");
    };
    await changeMany(withProgress({ ...shell, progressAfterMs: 0 }), work(answers));
    expect(progressIn(err())).toContain("|cordon nodes, 1 so far ... ");
    expect(progressIn(err())).toMatch(/\|$/);
    expect(out()).toBe(lines("NODE  OUTCOME", "n1    Ok", "n2    Ok"));
  });
});
