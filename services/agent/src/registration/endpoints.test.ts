import { describe, expect, it } from "@jest/globals";
import { resolveEndpoints } from "./endpoints.ts";

const SERVER = { host: "10.1.2.3", port: 7700 };

describe("resolveEndpoints()", () => {
  it.each([
    [[":7701"], SERVER, ["10.1.2.3:7701"]],
    [[":7701"], { host: "fd00::1", port: 7700 }, ["[fd00::1]:7701"]],
    [["health-1:7701", "[::1]:7702"], SERVER, ["health-1:7701", "[::1]:7702"]],
    [[":7701", "10.1.2.3:7701"], SERVER, ["10.1.2.3:7701"]],
    [["", "nonsense", ":0", ":99999", "a:b"], SERVER, []],
    [[], SERVER, []],
  ])("should resolve %j against %j", (endpoints, server, resolved) => {
    expect(resolveEndpoints(endpoints, server)).toEqual(resolved);
  });
});
