import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type AgentTrust, AgentTrustSchema } from "@rollcall/api/rollcall/admin/v1/diagnosis_pb";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { evaluateNextCertificate, evaluateTrust } from "./evaluate-trust.ts";

const { ANNOUNCED, FILE, SYSTEM, NONE } = TrustSource;
const [OLD, NEW] = ["sha256:old", "sha256:new"];

function agents(source: TrustSource, authorities: readonly string[], nodeIds: readonly string[] = ["n1"]): AgentTrust {
  const trust = { source, authorities: [...authorities], serverName: "cp.example" };
  return create(AgentTrustSchema, { trust, nodes: nodeIds.length, nodeIds: [...nodeIds] });
}
const unreported = create(AgentTrustSchema, { nodes: 2, nodeIds: ["kit-1", "kit-2"] });
const announcing = (...authorities: string[]) => ({ authorities, certificateAuthority: OLD });

describe("evaluateTrust()", () => {
  it("should count the agents that do not trust the next authority yet, by name", () => {
    const many = Array.from({ length: 12 }, (_, at) => `n${at}`);
    const trust = [agents(ANNOUNCED, [OLD, NEW], ["ready"]), agents(ANNOUNCED, [OLD], many.slice(0, 10))];
    const findings = evaluateTrust([announcing(OLD, NEW)], trust);
    expect(findings).toMatchObject([
      { status: "ok", subject: OLD, found: "authority in use: 11 of 11 agents trust it" },
      { status: "warning", subject: NEW, found: expect.stringContaining("10 of 11 agents do not trust it: n0, n1,") },
    ]);
    expect(findings[1]?.advice).toContain("until these agents have reconnected");
  });

  it("should name the machines to visit if agents have a file, or trust the system's authorities", () => {
    const [, next] = evaluateTrust([announcing(OLD, NEW)], [agents(FILE, [OLD]), agents(SYSTEM, [OLD], ["n2"])]);
    expect(next?.advice).toMatch(/--ca-file.*system's trusted authorities/);
  });

  it("should ignore agents in clear text, and find nothing if nothing is announced", () => {
    expect(evaluateTrust([announcing(OLD)], [agents(NONE, [])])).toMatchObject([{ status: "ok" }]);
    expect(evaluateTrust([announcing()], [agents(ANNOUNCED, [OLD])])).toEqual([]);
  });

  it("should warn about agents that report nothing only while an authority changes", () => {
    expect(evaluateTrust([announcing(OLD)], [unreported])).toHaveLength(1);
    const during = evaluateTrust([announcing(OLD, NEW)], [unreported]);
    expect(during.at(-1)).toMatchObject({ status: "warning", found: expect.stringContaining("kit-1, kit-2") });
  });

  it("should warn about processes that announce different authorities", () => {
    const findings = evaluateTrust(
      [announcing(OLD), announcing(NEW, OLD), announcing()],
      [agents(ANNOUNCED, [OLD, NEW])],
    );
    expect(findings[0]).toMatchObject({ status: "warning", subject: "control plane" });
    expect(evaluateTrust([announcing(NEW, OLD), announcing(OLD, NEW)], [])[0]?.status).toBe("ok");
  });
});

describe("evaluateNextCertificate()", () => {
  const next = { file: "next.pem", authorities: [NEW], isFor: (name: string) => name === "cp.example" };

  it("should find the agents that it locks out, by authority and by name", () => {
    expect(evaluateNextCertificate(next, [agents(ANNOUNCED, [NEW, OLD])])).toMatchObject([{ status: "ok" }]);
    expect(evaluateNextCertificate(next, [agents(ANNOUNCED, [OLD])])).toMatchObject([
      { status: "problem", found: expect.stringContaining("1 of 1 agent does not trust: it locks out n1") },
    ]);
    const renamed = { ...next, isFor: () => false };
    expect(evaluateNextCertificate(renamed, [agents(ANNOUNCED, [NEW])])).toMatchObject([
      { status: "problem", found: "is not valid for cp.example: it locks out 1 agent: n1" },
    ]);
  });

  it("should warn about streams at names for which it is not valid", () => {
    const findings = evaluateNextCertificate(next, [agents(ANNOUNCED, [NEW])], ["cp.example", "10.0.0.7"]);
    expect(findings).toMatchObject([
      { status: "warning", found: expect.stringContaining("is not valid for 10.0.0.7, which") },
    ]);
  });

  it("should lock out all agents if its authority is unknown, and warn about agents that report nothing", () => {
    const unknown = { ...next, authorities: [] };
    expect(evaluateNextCertificate(unknown, [agents(ANNOUNCED, [OLD]), unreported])).toMatchObject([
      { status: "problem", found: expect.stringContaining("an authority that is not announced") },
      { status: "warning" },
    ]);
  });
});
