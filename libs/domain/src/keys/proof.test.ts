import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { proofText } from "./proof.ts";

const proof = {
  method: "/rollcall.registry.v1.RegistryService/RegisterNode",
  clusterId: "c1",
  nodeId: "n1",
};

describe("proofText()", () => {
  it("should be five lines without a last line break", () => {
    expect(proofText({ ...proof, nonce: "bm9uY2U" })).toBe(
      "rollcall-proof-v1\n/rollcall.registry.v1.RegistryService/RegisterNode\nc1\nn1\nbm9uY2U",
    );
  });

  it("should write bytes as base64url without padding", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (nonce) => {
        const encoded = Buffer.from(nonce).toString("base64url");
        expect(proofText({ ...proof, nonce })).toBe(proofText({ ...proof, nonce: encoded }));
      }),
    );
  });
});
