import { describe, expect, it } from "@jest/globals";
import { repairOfDistrust } from "./distrust.ts";

describe("repairOfDistrust()", () => {
  it("should name the fingerprint that is served, have it confirmed, and name the option that takes it", () => {
    const repair = repairOfDistrust({ roots: "kept", trusted: ["sha256:a"], served: ["sha256:a", "sha256:b"] });
    expect(repair).toMatch(
      /`rollcall token create` at the control plane and check whether sha256:b is its authority.*--ca-fingerprint sha256:b /,
    );
    expect(repairOfDistrust({ roots: "system", trusted: [], served: ["sha256:b"] })).toContain(
      "--ca-fingerprint sha256:b ",
    );
  });

  it("should name the file of an agent that has one", () => {
    expect(repairOfDistrust({ roots: "file", trusted: ["sha256:a"], served: ["sha256:b"] })).toContain("--ca-file");
  });

  it("should refer to the control plane if nothing is served, or the served authorities do not verify", () => {
    expect(repairOfDistrust({ roots: "kept", trusted: ["sha256:a"], served: [] })).toContain("prints the authority's");
    const wrong = repairOfDistrust({ roots: "kept", trusted: ["sha256:a"], served: ["sha256:a"] });
    expect(wrong).toContain("fix TLS.CertFile");
  });
});
