import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { GreetingSchema } from "@rollcall/api/rollcall/keeper/v1/keeper_pb";
import { SMALL_FACTS } from "../testing/agent-harness.ts";
import { parseShares, workCapacity } from "./work-capacity.ts";
import { parsePorts } from "./work-keys.ts";

describe("parseShares()", () => {
  it.each([
    [{}, { cpu: 1, memory: 1, disk: 1 }],
    [
      { CPU: "80%", Memory: "0.5", gpu: "100%" },
      { cpu: 0.8, memory: 0.5, disk: 1 },
    ],
    [{ cores: "2" }, { cpu: 2, memory: 1, disk: 1 }],
  ])("should read %j", (texts, shares) => {
    expect(parseShares(texts)).toEqual({ ok: true, shares });
  });

  it.each([{ ram: "1" }, { cpu: "much" }, { cpu: "-1" }, { cpu: "101" }])("should refuse %j", (texts) => {
    expect(parseShares(texts).ok).toBe(false);
  });
});

describe("workCapacity()", () => {
  const given = { shares: { cpu: 0.5, memory: 0.25, disk: 2 }, ports: { min: 100, max: 200 } };

  it("should be a share of what the machine has", () => {
    const greeting = create(GreetingSchema, { executors: ["process"], limits: ["cpu"], users: ["web"] });
    expect(workCapacity(SMALL_FACTS, greeting, given)).toMatchObject({
      executors: ["process"],
      millicores: 4_000,
      memoryBytes: 4n * 1024n ** 3n,
      diskBytes: 200n * 1024n ** 3n,
      portMin: 100,
      portMax: 200,
      limits: ["cpu"],
      users: ["web"],
    });
  });

  it("should be none before a keeper has answered, and of one that runs no executor", () => {
    expect(workCapacity(SMALL_FACTS, null, given)).toBeUndefined();
    expect(workCapacity(SMALL_FACTS, create(GreetingSchema), given)).toBeUndefined();
  });
});

describe("parsePorts()", () => {
  it.each([
    ["20000-32000", { min: 20_000, max: 32_000 }],
    ["none", { min: 0, max: 0 }],
    ["2-1", null],
    ["0-10", null],
    ["1-65536", null],
  ])("should read %s", (words, range) => {
    expect(parsePorts(words)).toEqual(range);
  });
});
