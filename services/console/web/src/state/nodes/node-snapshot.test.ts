import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type Node, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { WatchNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import fc from "fast-check";
import { toRow } from "./node-row.ts";
import { mostRows, NodeSnapshot } from "./node-snapshot.ts";
import { SortedView } from "./sorted-view.ts";
import { testNode } from "./testing/test-rows.ts";

function message(
  upserted: readonly string[],
  removed: readonly string[] = [],
  end: { token?: string; complete?: boolean } = {},
) {
  return create(WatchNodesResponseSchema, {
    changes: [
      ...upserted.map((id) => ({ change: { case: "upserted", value: testNode(id) } as const })),
      ...removed.map((value) => ({ change: { case: "removedId", value } as const })),
    ],
    snapshotComplete: end.complete ?? false,
    resumeToken: end.token ?? "",
  });
}

describe("mostRows()", () => {
  it("should be the number that the browser stores, if it is lower than the default", () => {
    expect([null, "", "x", "-1", "0", "1.5", "9999999"].map(mostRows)).toEqual(Array(7).fill(50_000));
    expect(mostRows("400")).toBe(400);
  });
});

describe("NodeSnapshot", () => {
  it("should stay within its limit, count what it left out, and release everything", () => {
    const snapshot = new NodeSnapshot(2);
    snapshot.apply(message(["a", "b", "c"], [], { complete: true, token: "t" }));
    expect([[...snapshot.rows.keys()], snapshot.progress.leftOut]).toEqual([["a", "b"], 1]);
    expect(snapshot.clear().map(({ before, after }) => [before?.id, after])).toEqual([
      ["a", undefined],
      ["b", undefined],
    ]);
    expect([snapshot.rows.size, snapshot.progress]).toMatchObject([0, { leftOut: 0, resumeToken: "" }]);
  });

  it("should count only machines, and none that were removed", () => {
    const snapshot = new NodeSnapshot(2);
    const process = testNode("p", {}, { type: NodeType.ORCHESTRATOR });
    snapshot.apply(create(WatchNodesResponseSchema, { changes: [{ change: { case: "upserted", value: process } }] }));
    snapshot.apply(message(["a", "b"], ["a"]));
    snapshot.apply(message(["c", "b"], ["p"], { complete: true }));
    expect([[...snapshot.rows.keys()], snapshot.progress.leftOut]).toEqual([["b", "c"], 0]);
    snapshot.apply(message(["d"]));
    expect(snapshot.progress.leftOut).toBe(1);
  });

  it("should leave out what does not match, and remove what no longer matches", () => {
    const snapshot = new NodeSnapshot();
    snapshot.apply(message(["a", "b"], [], { complete: true }), ({ id }) => id !== "b");
    expect([...snapshot.rows.keys()]).toEqual(["a"]);
    const changes = snapshot.apply(message(["a"]), (_, isKnown) => !isKnown);
    expect(changes).toMatchObject([{ before: { id: "a" }, after: undefined }]);
  });

  it("should have the nodes of a snapshot, and follow changes", () => {
    const snapshot = new NodeSnapshot();
    snapshot.apply(message(["a", "b"], [], { token: "within" }));
    expect(snapshot.progress).toMatchObject({ complete: false, resumeToken: "" });
    snapshot.apply(message(["c"], [], { token: "t1", complete: true }));
    expect(snapshot.progress).toMatchObject({ complete: true, resumeToken: "t1" });
    const changes = snapshot.apply(message(["d"], ["a", "unheard-of"], { token: "t2" }));
    expect([...snapshot.rows.keys()]).toEqual(["b", "c", "d"]);
    expect(changes.map(({ before, after }) => [before?.id, after?.id])).toEqual([
      [undefined, "d"],
      ["a", undefined],
    ]);
    expect(snapshot.progress.resumeToken).toBe("t2");
  });

  it("should keep its nodes while another snapshot arrives, then remove those missing from it", () => {
    const snapshot = new NodeSnapshot();
    snapshot.apply(message(["a", "b"], [], { token: "t1", complete: true }));
    snapshot.restart();
    expect(snapshot.progress.resumeToken).toBe("");
    snapshot.apply(message(["b"]));
    expect([...snapshot.rows.keys()]).toEqual(["a", "b"]);
    const changes = snapshot.apply(message(["c"], [], { token: "t9", complete: true }));
    expect([...snapshot.rows.keys()]).toEqual(["b", "c"]);
    expect(changes.at(-1)).toMatchObject({ before: { id: "a" }, after: undefined });
  });

  it("should remove nothing when it continues from a token", () => {
    const snapshot = new NodeSnapshot();
    snapshot.apply(message(["a", "b"], [], { token: "t1", complete: true }));
    snapshot.apply(message(["c"], [], { token: "t2", complete: true }));
    expect([...snapshot.rows.keys()]).toEqual(["a", "b", "c"]);
  });
});

/** A change to one of a few nodes: the node has a number of processors, or is gone. */
const happening = fc.record({
  id: fc.constantFrom("a", "b", "c", "d", "e", "f"),
  threads: fc.option(fc.integer({ min: 1, max: 4 }), { nil: null }),
});

describe("a snapshot and a view of it", () => {
  it("should end with the current nodes, however the events are split into messages", () => {
    const events = fc.array(happening, { maxLength: 60 });
    const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(events, cuts, fc.boolean(), (happened, sizes, reversed) => {
        const snapshot = new NodeSnapshot();
        const test = ({ cores }: { readonly cores: number }) => cores !== 2;
        const view = new SortedView([], test, { by: "cores", reversed });
        const listed = new Map<string, Node>();
        snapshot.apply(create(WatchNodesResponseSchema, { snapshotComplete: true, resumeToken: "t" }));
        for (let at = 0, part = 0; at < happened.length; part += 1) {
          const size = sizes[part % sizes.length] ?? 1;
          const changes = happened.slice(at, at + size).map(({ id, threads }) => {
            if (threads === null) {
              listed.delete(id);
              return { change: { case: "removedId", value: id } as const };
            }
            const node = testNode(id, {}, { info: { cpu: { threads } } });
            listed.set(id, node);
            return { change: { case: "upserted", value: node } as const };
          });
          view.apply(snapshot.apply(create(WatchNodesResponseSchema, { changes, resumeToken: `t${part}` })));
          at += size;
        }
        const rows = [...listed.values()].map(toRow);
        expect(new Map(snapshot.rows)).toEqual(new Map(rows.map((row) => [row.id, row])));
        expect(view.rows).toEqual(new SortedView(rows, test, { by: "cores", reversed }).rows);
      }),
    );
  });
});
