import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { addNode, createTestDatabase, refusalOf, type TestDatabase } from "@rollcall/testkit";
import { findNode, lockNamedNode } from "./node-reference.ts";

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

  it("should refuse a prefix of several", async () => {
    expect(await refusalOf(find("web"))).toMatchObject({ reason: "AMBIGUOUS_NODE" });
  });

  it.each(["nobody", "%", "a\0b", ""])("should find nothing by %j", async (ref) => {
    const refusal = await refusalOf(find(ref));
    expect(refusal).toMatchObject({ reason: "NODE_NOT_FOUND", metadata: { node: ref } });
  });
});
