import { hostname } from "node:os";
import { describe, expect, it } from "@jest/globals";
import { reachableHost } from "./create-services.ts";

describe("reachableHost()", () => {
  it.each([
    ["10.0.0.7", "10.0.0.7"],
    ["rollcall.example", "rollcall.example"],
    ["::1", "[::1]"],
    ["2001:db8::7", "[2001:db8::7]"],
    ["0.0.0.0", hostname()],
    ["::", hostname()],
  ])("should write %s as %s", (host, expected) => {
    expect(reachableHost(host)).toBe(expected);
  });
});
