import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { findKnownNodes, findNode, findNodeByPrefix, lockNamedNode } from "./node-reference.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  for (const id of ["gpu", "gpu-1", "gpu-2", "web-1", "web-2"]) await addNode(database.store, id);
});
afterAll(() => database.drop());

const WAYS = {
  findNode: (ref: string) => findNode(database.store.db, ref),
  lockNamedNode: (ref: string) => database.store.transaction((tx) => lockNamedNode(tx, ref)),
};

describe.each(Object.entries(WAYS))("%s()", (_, find) => {
  it.each([
    ["gpu", "gpu"],
    ["gpu-1", "gpu-1"],
    ["web-2", "web-2"],
  ])("should find by %s the node %s", async (ref, id) => {
    expect((await find(ref)).id).toBe(id);
  });

  it.each([
    ["web", "web-1"],
    ["gpu-11", "gpu-1"],
    ["WEB-2", "web-2"],
  ])("should not find %s, but suggest %s", async (ref, suggestion) => {
    const refusal = await refusalOf(find(ref));
    expect(refusal).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { node: ref, suggestion } });
  });

  it.each(["nobody", "%", "a\0b", ""])("should find nothing by %j", async (ref) => {
    const refusal = await refusalOf(find(ref));
    expect(refusal).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { node: ref } });
  });
});

describe("findNodeByPrefix()", () => {
  const find = (ref: string) => findNodeByPrefix(database.store.db, ref);

  it("should prefer an id over a prefix, and refuse an ambiguous prefix", async () => {
    expect((await find("gpu")).id).toBe("gpu");
    await addNode(database.store, "lonely");
    expect((await find("lone")).id).toBe("lonely");
    expect(await refusalOf(find("web"))).toMatchObject({ reason: "AMBIGUOUS_NODE" });
    expect(await refusalOf(find("nobody"))).toMatchObject({ reason: "NODE_NOT_FOUND" });
  });
});

describe("findKnownNodes()", () => {
  it("should separate node ids from other names, each once, with suggestions", async () => {
    const { ids, refusals } = await findKnownNodes(database.store.db, ["web-2", "gpu", "web", "gpu", "a\0b", "web"]);
    expect(ids).toEqual(["gpu", "web-2"]);
    expect(refusals.map(({ name, refusal }) => [name, refusal.metadata.suggestion])).toEqual([
      ["web", "web-1"],
      ["a\0b", undefined],
    ]);
  });
});
