import { describe, expect, it } from "@jest/globals";
import { isVersionAtLeast } from "./agent-version.ts";

describe("isVersionAtLeast()", () => {
  it.each([
    ["0.2.0", "0.2.0", true],
    ["0.10.0", "0.9.9", true],
    ["0.2", "0.2.0", true],
    ["v1.0.0", "0.9", true],
    ["0.1.9", "0.2.0", false],
    ["0.2.0-rc.1", "0.2.0", false],
    ["0.2.0-rc.1", "0.2.0-rc.0", true],
    ["0.2.1-rc.1", "0.2.0", true],
    ["", "0.2.0", false],
    ["development", "0.0.1", false],
  ])("should decide whether %j is at least %j: %j", (version, least, expected) => {
    expect(isVersionAtLeast(version, least)).toBe(expected);
  });
});
