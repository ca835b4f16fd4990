import { describe, expect, it } from "@jest/globals";
import { runAgainst, useFakeControlPlane } from "../testing/run.ts";
import { computeNode } from "../testing/sample-nodes.ts";

const server = useFakeControlPlane();

describe("node describe", () => {
  it("should print the whole record as YAML: states with their reasons, labels with where they come from", async () => {
    server.add(computeNode("n1"));
    const { code, out } = await runAgainst(server, "node describe n1 -o yaml");
    expect(code).toBe(0);
    expect(out).toMatch(/^id: n1\ntype: NODE_TYPE_COMPUTE\nmembership:\n {2}state: MEMBERSHIP_STATE_APPROVED\n/);
    expect(out).toContain("  reason: AUTO_APPROVED\n");
    expect(out).toContain("  - key: gpu\n    value: h100\n    tier: LABEL_TIER_AGENT\n");
    expect(out).toContain("keyFingerprint: SHA256:abc\n");
  });

  it("should print JSON when asked, and find a node by the beginning of its id", async () => {
    server.add(computeNode("machine-1"));
    const { out } = await runAgainst(server, "node describe mach --output json");
    expect(JSON.parse(out)).toMatchObject({
      id: "machine-1",
      mayTakeWork: true,
      etag: "e1",
    });
  });

  it("should refuse formats that it does not know", async () => {
    expect(await runAgainst(server, "node describe n1 --output csv")).toEqual({
      code: 2,
      out: "",
      err: `cannot use 'csv' as output value, should be one of: ["table" "name" "json" "yaml"]\n`,
    });
  });

  it("should tell that there is no such node, or that there are several", async () => {
    server.add(computeNode("n1"), computeNode("n2"));
    expect(await runAgainst(server, "node describe x")).toEqual({
      code: 1,
      out: "",
      err: "failed to describe node x: node x not found\n",
    });
    expect((await runAgainst(server, "node describe n")).err).toBe(
      "failed to describe node n: n is ambiguous: n1, n2: use a longer prefix\n",
    );
  });

  it("should want exactly one node", async () => {
    expect((await runAgainst(server, "node describe")).code).toBe(2);
    expect((await runAgainst(server, "node describe n1 n2")).code).toBe(2);
  });
});
