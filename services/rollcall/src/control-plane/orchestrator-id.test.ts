import { describe, expect, it } from "@jest/globals";
import { isNodeId } from "@rollcall/domain";
import { orchestratorId } from "./orchestrator-id.ts";

describe("orchestratorId()", () => {
  it("should be the same for the same process", () => {
    expect(orchestratorId("registry", "host.example", 7710, 1)).toBe("registry-host.example-7710");
    expect(orchestratorId("up", "host", 7700, 2)).toBe("up-host-7700-2");
  });

  it.each(["", "ünï cödé/host", "h".repeat(300)])("should be a node id for the host %j", (host) => {
    expect(isNodeId(orchestratorId("health", host, 7711, 1))).toBe(true);
    expect(orchestratorId("health", host, 7711, 12).endsWith("-7711-12")).toBe(true);
  });
});
