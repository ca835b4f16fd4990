import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { WatchNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { NodeSnapshot } from "./node-snapshot.ts";
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

describe("NodeSnapshot", () => {
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

  it("should keep what it has while another snapshot comes, and then remove what that did not name", () => {
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

  it("should remove nothing when it goes on from a token", () => {
    const snapshot = new NodeSnapshot();
    snapshot.apply(message(["a", "b"], [], { token: "t1", complete: true }));
    snapshot.apply(message(["c"], [], { token: "t2", complete: true }));
    expect([...snapshot.rows.keys()]).toEqual(["a", "b", "c"]);
  });
});
