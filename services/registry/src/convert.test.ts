import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { MembershipState, NodeType } from "@rollcall/api/rollcall/node/v1/node_pb";
import { ListNodesRequestSchema, NodeStatus } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError } from "@rollcall/errors";
import { parseLabelSelector, parseNodeListing, parseOrderBy } from "./convert.ts";

function listing(request: MessageInitShape<typeof ListNodesRequestSchema> = {}) {
  return parseNodeListing(create(ListNodesRequestSchema, request), "log");
}

function refusalOf(parse: () => unknown) {
  try {
    parse();
  } catch (error) {
    return describeError(error);
  }
  throw new Error("it was not refused");
}

describe("parseOrderBy()", () => {
  it.each([
    ["", "id", false],
    ["  ", "id", false],
    ["id", "id", false],
    ["cores desc", "cores", true],
    [" cores   desc ", "cores", true],
    ["cores asc", "cores", false],
    ["created", "created", false],
  ])("should read %j", (text, column, descending) => {
    expect(parseOrderBy(text)).toEqual({ column, descending });
  });

  it.each(["desc", "core", "Cores", "cores down", "cores desc desc", "cores, id", "cores;", "__proto__"])(
    "should refuse %j",
    (text) => {
      expect(refusalOf(() => parseOrderBy(text))).toMatchObject({
        reason: "INVALID_ORDER_BY",
        metadata: { orderBy: text },
        violations: [{ field: "order_by" }],
      });
    },
  );
});

describe("parseLabelSelector()", () => {
  it("should read what the domain reads", () => {
    expect(parseLabelSelector("zone=a,!spot")).toEqual([
      { operator: "=", key: "zone", value: "a" },
      { operator: "!exists", key: "spot" },
    ]);
  });

  it("should report where parsing failed", () => {
    expect(refusalOf(() => parseLabelSelector("zone in (a"))).toMatchObject({
      reason: "INVALID_SELECTOR",
      metadata: { position: "10" },
      violations: [{ field: "label_selector" }],
    });
  });
});

describe("parseNodeListing()", () => {
  it("should restrict nothing by default, with 100 nodes per page", () => {
    expect(listing()).toMatchObject({
      filter: {},
      orderBy: { column: "id", descending: false },
      limit: 100,
    });
  });

  it("should convert each kind of filter", () => {
    const { filter, limit } = listing({
      pageSize: 7,
      types: [NodeType.COMPUTE],
      memberships: [MembershipState.REJECTED, MembershipState.PENDING],
      statuses: [NodeStatus.UNKNOWN, NodeStatus.CONNECTED],
      labelSelector: "a=b",
    });
    expect(limit).toBe(7);
    expect(filter).toEqual({
      types: ["COMPUTE"],
      memberships: ["PENDING", "REJECTED"],
      statuses: ["CONNECTED", "UNKNOWN"],
      selector: [{ operator: "=", key: "a", value: "b" }],
    });
  });

  it("should give equal listings the same name", () => {
    const { PENDING, APPROVED } = MembershipState;
    const one = listing({ memberships: [PENDING, APPROVED, PENDING], labelSelector: "a==b" });
    const other = listing({
      memberships: [APPROVED, PENDING],
      labelSelector: " a = b ",
      pageSize: 9,
    });
    expect(other.name).toBe(one.name);
  });

  it("should give different listings different names", () => {
    const names = [
      {},
      { orderBy: "id desc" },
      { orderBy: "cores" },
      { types: [NodeType.COMPUTE] },
      { memberships: [MembershipState.PENDING] },
      { statuses: [NodeStatus.UNKNOWN] },
      { labelSelector: "a" },
      { labelSelector: "a,b" },
    ].map((request) => listing(request).name);
    expect(new Set(names).size).toBe(names.length);
  });
});
