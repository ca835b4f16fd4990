import { describe, expect, it } from "@jest/globals";
import { connectionAfter } from "../session/connection.ts";
import { nodeRecord } from "../testing/node.ts";
import { admitControlPlane, controlPlaneLost, controlPlaneOpened, expireControlPlane } from "./control-plane-node.ts";

const connected = nodeRecord({ id: "cp", type: "ORCHESTRATOR" });
const lost = nodeRecord({
  id: "cp",
  type: "ORCHESTRATOR",
  connection: connectionAfter("lease-expired", { actor: "replica:r2", atMs: 0 }),
});

describe("admitControlPlane()", () => {
  it("should approve a process with a new id at once", () => {
    expect(admitControlPlane("cp", [])).toMatchObject({
      kind: "new",
      membership: { state: "APPROVED", reason: "CONTROL_PLANE", actor: "node:cp" },
      event: { type: "node.registered", subject: "cp", reason: "CONTROL_PLANE" },
    });
  });

  it.each([
    ["its own node", "known", "cp", "ORCHESTRATOR"],
    ["a compute node of its id", "taken", "cp", "COMPUTE"],
    ["a compute node of its id in another case", "taken", "CP", "COMPUTE"],
    ["another process of its id in another case", "taken", "CP", "ORCHESTRATOR"],
  ] as const)("should know %s as %s", (_, kind, id, type) => {
    expect(admitControlPlane("cp", [{ id, type }])).toEqual({ kind });
  });

  it("should recognize its own node among others that differ only in case", () => {
    const alike = [
      { id: "CP", type: "COMPUTE" },
      { id: "cp", type: "ORCHESTRATOR" },
    ] as const;
    expect(admitControlPlane("cp", alike)).toEqual({ kind: "known" });
  });
});

describe("controlPlaneOpened()", () => {
  it("should connect a process that was lost", () => {
    expect(controlPlaneOpened(lost)).toMatchObject({
      after: { state: "CONNECTED", reason: "STREAM_OPENED", actor: "node:cp" },
      event: { type: "node.connection.changed", subject: "cp", actor: "node:cp" },
    });
  });

  it("should change nothing of a process that is back before its lease has run out", () => {
    expect(controlPlaneOpened(connected)).toBeNull();
  });
});

describe("controlPlaneLost()", () => {
  it.each([
    ["goodbye", "AGENT_SHUTDOWN"],
    ["lease-expired", "LEASE_EXPIRED"],
  ] as const)("should disconnect after %s for %s", (signal, reason) => {
    expect(controlPlaneLost(connected, signal, "replica:r2")).toMatchObject({
      after: { state: "DISCONNECTED", reason, actor: "replica:r2" },
      event: { type: "node.connection.changed", subject: "cp", reason, actor: "replica:r2" },
    });
  });

  it("should change nothing of a process that is known to be lost", () => {
    expect(controlPlaneLost(lost, "goodbye", "replica:r2")).toBeNull();
  });
});

describe("expireControlPlane()", () => {
  it("should remove a process that is gone", () => {
    const removal = { actor: "system", reason: "LEASE_EXPIRED", message: "its process is gone" };
    expect(expireControlPlane(lost)).toEqual({
      removal,
      event: expect.objectContaining({ type: "node.deleted", subject: "cp", after: null, ...removal }),
    });
  });

  it("should keep a process that is back", () => {
    expect(expireControlPlane(connected)).toBeNull();
  });
});
