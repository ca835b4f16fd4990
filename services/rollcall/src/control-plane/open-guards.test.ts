import { describe, expect, it } from "@jest/globals";
import { judgeProxies } from "./open-guards.ts";

describe("judgeProxies()", () => {
  const judge = judgeProxies(["10.0.0.7", "192.168.0.0/16", "::1", "2001:db8::/32"]);

  it.each([
    ["10.0.0.7", "proxy"],
    ["10.0.0.8", "other"],
    // As a socket has it that listens on :: for both.
    ["::ffff:10.0.0.7", "proxy"],
    ["::ffff:10.0.0.8", "other"],
    ["192.168.255.1", "proxy"],
    ["192.169.0.1", "other"],
    ["::1", "proxy"],
    ["127.0.0.1", "other"],
    ["2001:db8:ffff::9", "proxy"],
    ["2001:DB8:0::9", "proxy"],
    ["2001:db9::9", "other"],
    ["10.0.0", "invalid"],
    ["10.0.0.256", "invalid"],
    ["unknown", "invalid"],
    ["", "invalid"],
  ])("should judge %s as %s", (host, judgement) => {
    expect(judge(host)).toBe(judgement);
  });

  it("should trust no proxy unless told so", () => {
    expect(judgeProxies([])("127.0.0.1")).toBe("other");
  });
});
