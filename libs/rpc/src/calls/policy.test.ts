import { describe, expect, it } from "@jest/globals";
import { HealthService } from "@rollcall/api/rollcall/health/v1/health_pb";
import { bearerOf, roleSuffices } from "@rollcall/identity";
import { definePolicies, policyProblems } from "./policy.ts";

const METHOD = "rollcall.health.v1.HealthService/Heartbeat";
const stream = { caller: "node", deadlineMs: 0, idempotent: false } as const;

/** Valid rows for the other methods of the service. */
const OTHERS = { "rollcall.health.v1.HealthService/ServeLogs": stream };

describe("definePolicies()", () => {
  it("should name rows by method", () => {
    expect(definePolicies(HealthService, { heartbeat: stream, serveLogs: stream })).toEqual({
      [METHOD]: stream,
      "rollcall.health.v1.HealthService/ServeLogs": stream,
    });
  });
});

describe("policyProblems()", () => {
  it.each([
    [{ [METHOD]: stream }, []],
    [{}, [`${METHOD} has no policy row`]],
    [{ [METHOD]: { ...stream, deadlineMs: 5 } }, [`${METHOD} is a stream and takes no deadline`]],
  ])("should evaluate %j", (table, problems) => {
    expect(policyProblems([HealthService], { ...OTHERS, ...table })).toEqual(problems);
  });
});

describe("roleSuffices()", () => {
  it("should allow each role what the lower ones can do", () => {
    const roles = ["viewer", "operator", "admin"] as const;
    const table = roles.map((has) => roles.map((needs) => roleSuffices(has, needs)));
    expect(table).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
  });
});

describe("bearerOf()", () => {
  it.each([
    ["Bearer abc", "abc"],
    ["bearer  abc", "abc"],
    ["Bearer ", null],
    ["Bearer a b", null],
    ["Basic abc", null],
    [`Bearer ${"x".repeat(16_384)}`, "x".repeat(16_384)],
    [`Bearer ${"x".repeat(16_385)}`, null],
    [null, null],
  ])("should read %j as %j", (header, token) => {
    expect(bearerOf(header)).toBe(token);
  });
});
