import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type AgentTrust, AgentTrustSchema } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { judgeNextCertificate, judgeTrust } from "./judge-trust.ts";

const { ANNOUNCED, FILE, SYSTEM, NONE } = TrustSource;
const [OLD, NEW] = ["sha256:old", "sha256:new"];

function agents(source: TrustSource, authorities: readonly string[], nodeIds: readonly string[] = ["n1"]): AgentTrust {
  const trust = { source, authorities: [...authorities], serverName: "cp.example" };
  return create(AgentTrustSchema, { trust, nodes: nodeIds.length, nodeIds: [...nodeIds] });
}
const unreported = create(AgentTrustSchema, { nodes: 2, nodeIds: ["kit-1", "kit-2"] });
const announcing = (...authorities: string[]) => ({ authorities, certificateAuthority: OLD });

describe("judgeTrust()", () => {
  it("should count the agents that do not trust the next authority yet, by name", () => {
    const many = Array.from({ length: 12 }, (_, at) => `n${at}`);
    const trust = [agents(ANNOUNCED, [OLD, NEW], ["ready"]), agents(ANNOUNCED, [OLD], many.slice(0, 10))];
    const findings = judgeTrust([announcing(OLD, NEW)], trust);
    expect(findings).toMatchObject([
      { verdict: "ok", subject: OLD, found: "authority in use: all 11 agents trust it" },
      { verdict: "warning", subject: NEW, found: expect.stringContaining("10 of 11 agents do not trust it: n0, n1,") },
    ]);
    expect(findings[1]?.advice).toContain("until these agents have connected again");
  });

  it("should name the machines to visit where agents have a file, or trust what the system does", () => {
    const [, next] = judgeTrust([announcing(OLD, NEW)], [agents(FILE, [OLD]), agents(SYSTEM, [OLD], ["n2"])]);
    expect(next?.advice).toMatch(/--ca-file.*trusted authorities of machines/);
  });

  it("should leave agents in clear text aside, and find nothing where nothing is announced", () => {
    expect(judgeTrust([announcing(OLD)], [agents(NONE, [])])).toMatchObject([{ verdict: "ok" }]);
    expect(judgeTrust([announcing()], [agents(ANNOUNCED, [OLD])])).toEqual([]);
  });

  it("should warn of agents that report nothing only while an authority changes", () => {
    expect(judgeTrust([announcing(OLD)], [unreported])).toHaveLength(1);
    const during = judgeTrust([announcing(OLD, NEW)], [unreported]);
    expect(during.at(-1)).toMatchObject({ verdict: "warning", found: expect.stringContaining("kit-1, kit-2") });
  });

  it("should warn of processes that announce different authorities", () => {
    const findings = judgeTrust([announcing(OLD), announcing(NEW, OLD), announcing()], [agents(ANNOUNCED, [OLD, NEW])]);
    expect(findings[0]).toMatchObject({ verdict: "warning", subject: "control plane" });
    expect(judgeTrust([announcing(NEW, OLD), announcing(OLD, NEW)], [])[0]?.verdict).toBe("ok");
  });
});

describe("judgeNextCertificate()", () => {
  const next = { file: "next.pem", authorities: [NEW], isFor: (name: string) => name === "cp.example" };

  it("should find the agents that it locks out, by authority and by name", () => {
    expect(judgeNextCertificate(next, [agents(ANNOUNCED, [NEW, OLD])])).toMatchObject([{ verdict: "ok" }]);
    expect(judgeNextCertificate(next, [agents(ANNOUNCED, [OLD])])).toMatchObject([
      { verdict: "problem", found: expect.stringContaining("1 of 1 agents do not trust: it locks out n1") },
    ]);
    const renamed = { ...next, isFor: () => false };
    expect(judgeNextCertificate(renamed, [agents(ANNOUNCED, [NEW])])).toMatchObject([
      { verdict: "problem", found: "is not for cp.example: it locks out 1 agent: n1" },
    ]);
  });

  it("should warn of streams at names that it is not for", () => {
    const findings = judgeNextCertificate(next, [agents(ANNOUNCED, [NEW])], ["cp.example", "10.0.0.7"]);
    expect(findings).toMatchObject([
      { verdict: "warning", found: expect.stringContaining("is not for 10.0.0.7, where") },
    ]);
  });

  it("should lock out everyone where nobody knows its authority, and warn of agents that report nothing", () => {
    const unknown = { ...next, authorities: [] };
    expect(judgeNextCertificate(unknown, [agents(ANNOUNCED, [OLD]), unreported])).toMatchObject([
      { verdict: "problem", found: expect.stringContaining("an authority that is not announced") },
      { verdict: "warning" },
    ]);
  });
});
