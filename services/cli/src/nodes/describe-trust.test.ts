import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { NodeInfoSchema, TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { trustTexts } from "./describe.ts";

describe("trustTexts()", () => {
  it("should show where trust comes from, the expected name and each authority", () => {
    const trust = { source: TrustSource.ANNOUNCED, authorities: ["sha256:a", "sha256:b"], serverName: "cp.example" };
    const [first, ...rest] = trustTexts(create(NodeInfoSchema, { trust }));
    expect(first).toMatch(/announces.*for server name cp\.example$/);
    expect(rest).toEqual(["sha256:a", "sha256:b"]);
  });

  it("should show nothing for an agent that does not report it", () => {
    expect(trustTexts(create(NodeInfoSchema, {}))).toEqual([]);
    expect(trustTexts(create(NodeInfoSchema, { trust: {} }))).toEqual([]);
    expect(trustTexts(undefined)).toEqual([]);
  });
});
