import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeOutcomeSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { lines } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";
import { changeMany, type ManyAnswer, type ManyWork } from "./change-many.ts";
import { chooseNodes } from "./selection.ts";

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
  it("should say what became of the nodes before it broke off", async () => {
    const { shell, out, err } = shellOf();
    const call: ManyWork["call"] = async ({ pageToken }) => {
      if (pageToken === "") return page("n1", "more");
      throw new Error("the line is cut");
    };
    await expect(changeMany(shell, work(call))).rejects.toThrow("the line is cut");
    expect(out()).toBe(lines("NODE  OUTCOME", "n1    Ok"));
    expect(err()).toBe("stopped after 1 node; run it again for the rest\n");
  });

  it("should show its progress on a terminal, and clear it", async () => {
    const { shell, out, err } = shellOf(true);
    await changeMany(
      shell,
      work(async ({ pageToken }) => (pageToken === "" ? page("n1", "more") : page("n2", ""))),
    );
    expect(err()).toBe("\r\u001b[K1 node ...\r\u001b[K");
    expect(out()).toBe(lines("NODE  OUTCOME", "n1    Ok", "n2    Ok"));
  });
});
