import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type Node, NodeSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { DeletedNodeSchema, ListNodesResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { PAGE_BYTES } from "@rollcall/domain";
import { type Page, readPage, readRows } from "./page.ts";

const KIB = 1_024;
/** Create a node of about this many bytes. The id has one character for each byte. */
const nodeOf = (bytes: number): Node => create(NodeSchema, { id: "x".repeat(bytes) });
const call = (contentType: string, signal = new AbortController().signal) => ({
  requestHeader: new Headers({ "content-type": contentType }),
  signal,
});
const BINARY = "application/grpc+proto";
const JSON_TYPE = "application/json";

const pageOf = (pieces: readonly (readonly number[])[], limit: number, type = BINARY) =>
  readPage(call(type), { rows: pieces, limit, item: NodeSchema, toMessage: nodeOf });

/** Return the items and the token that a client receives. */
function received(page: Page<number>, nextPageToken = "") {
  const response = page.answer(ListNodesResponseSchema, "nodes", { nextPageToken });
  return fromBinary(ListNodesResponseSchema, toBinary(ListNodesResponseSchema, response));
}

const sizes = (page: Page<number>) => received(page).nodes.map(({ id }) => id.length);

describe("readPage()", () => {
  it("should have every row when they fit, and no next page", async () => {
    const page = await pageOf([[1, 2], [], [3]], 3);
    expect(page.next).toBeNull();
    expect(page.last).toBe(3);
    expect(received(page, "t")).toMatchObject({
      nodes: [{ id: "x" }, { id: "xx" }, { id: "xxx" }],
      nextPageToken: "t",
    });
  });

  it("should continue after the last row within its limit", async () => {
    const page = await pageOf([[1, 2], [3]], 2);
    expect(page.next).toBe(2);
    expect(sizes(page)).toEqual([1, 2]);
  });

  it("should continue after the last row that fits its bytes", async () => {
    const page = await pageOf([Array(3_000).fill(KIB)], 5_000);
    const bytes = toBinary(ListNodesResponseSchema, page.answer(ListNodesResponseSchema, "nodes", {}));
    expect(page.next).toBe(KIB);
    expect(sizes(page).length).toBeGreaterThan((PAGE_BYTES / KIB) * 0.99);
    expect(bytes.length).toBeLessThan(PAGE_BYTES * 1.01);
  });

  it("should have at least one row, however large", async () => {
    const page = await pageOf([[PAGE_BYTES + 1, 1]], 10);
    expect(sizes(page)).toEqual([PAGE_BYTES + 1]);
    expect(page.next).toBe(PAGE_BYTES + 1);
  });

  it("should be empty without rows", async () => {
    const page = await pageOf([], 10);
    expect([page.last, page.next]).toEqual([null, null]);
    expect(received(page)).toEqual(create(ListNodesResponseSchema));
  });

  it.each([JSON_TYPE, "application/grpc+json", "application/proto; charset=x", ""])(
    "should answer with messages, which JSON supports, to a call of type %j",
    async (type) => {
      const response = (await pageOf([[1, 2]], 10, type)).answer(ListNodesResponseSchema, "nodes", {
        nextPageToken: "t",
      });
      expect(toJson(ListNodesResponseSchema, response)).toEqual({
        nodes: [{ id: "x" }, { id: "xx" }],
        nextPageToken: "t",
      });
    },
  );

  it.each([BINARY, JSON_TYPE])("should reverse its items, of type %s", async (type) => {
    const page = (await pageOf([[1, 2, 3]], 2, type)).reversed();
    expect(sizes(page)).toEqual([2, 1]);
    expect(page.next).toBe(2);
  });

  it("should let other work run while it encodes, and end with its caller", async () => {
    const leaving = new AbortController();
    let turns = 0;
    const count = () => {
      turns += 1;
      if (turns === 10) leaving.abort(new Error("left"));
      else setImmediate(count);
    };
    setImmediate(count);
    let made = 0;
    const page = readPage(call(BINARY, leaving.signal), {
      rows: [Array(100_000).fill(KIB)],
      limit: 100_000,
      item: NodeSchema,
      toMessage: (size: number) => {
        made += 1;
        return nodeOf(size);
      },
    });
    await expect(page).rejects.toThrow("left");
    expect(made).toBeLessThan(16 * 20);
  });

  it("should refuse a response field that is not a list of its items", async () => {
    const page = await pageOf([[1]], 10);
    const answer = () => page.answer(ListNodesResponseSchema, "nextPageToken", {});
    expect(answer).toThrow("ListNodesResponse.nextPageToken is not a list of rollcall.node.v1.Node");
    expect(() => page.answer(DeletedNodeSchema, "labels", {})).toThrow("not a list");
  });
});

describe("readRows()", () => {
  /** Count the rows that each read requests from a table with `there` rows. */
  async function asked(limit: number, there: number) {
    const counts: number[] = [];
    const rows: number[] = [];
    const pieces = readRows({
      limit,
      from: 0,
      read: async (after: number, count) => {
        counts.push(count);
        const left = Math.max(0, there - after);
        return Array.from({ length: Math.min(count, left) }, (_, index) => after + 1 + index);
      },
      cursorOf: (row) => row,
    });
    for await (const piece of pieces) rows.push(...piece);
    expect(rows).toEqual(rows.map((_, index) => index + 1));
    return { counts, rows: rows.length };
  }

  it.each([
    // limit, existing rows, requested rows per read, rows returned
    [10, 100, [11], 11],
    [10, 11, [11], 11],
    [10, 3, [11], 3],
    [10, 0, [11], 0],
    [300, 1_000, [128, 128, 45], 301],
    [300, 256, [128, 128, 45], 256],
    [300, 200, [128, 128], 200],
    [128, 500, [128, 1], 129],
  ])("should read one more than %d of %d rows, in parts", async (limit, there, counts, rows) => {
    expect(await asked(limit, there)).toEqual({ counts, rows });
  });
});
