import { describe, expect, it } from "@jest/globals";
import { type AnnouncedAuthority, decideAuthorities } from "./announced-authorities.ts";

describe("decideAuthorities()", () => {
  const NOW = 1_000_000;
  const authority = (fingerprint: string, changes: Partial<AnnouncedAuthority> = {}): AnnouncedAuthority => {
    return { fingerprint, isRoot: true, notBeforeMs: NOW, notAfterMs: NOW + 1, isVerifying: false, ...changes };
  };
  const present = authority("old", { isVerifying: true });

  it("should accept the next authority next to the current one, and drop the former when it is no longer announced", () => {
    expect(decideAuthorities([present, authority("new")], ["old"], NOW)).toEqual({
      kind: "replace",
      fingerprints: ["new", "old"],
    });
    const next = authority("new", { isVerifying: true });
    expect(decideAuthorities([next], ["old", "new"], NOW)).toEqual({ kind: "replace", fingerprints: ["new"] });
  });

  it("should change nothing for authorities that it already trusts, in any order and however often they are named", () => {
    expect(decideAuthorities([authority("new"), present, present], ["old", "new"], NOW)).toEqual({ kind: "same" });
  });

  it.each<readonly [string, readonly AnnouncedAuthority[], string]>([
    ["nothing", [], "valid today"],
    ["only expired ones", [authority("old", { isVerifying: true, notAfterMs: NOW })], "valid today"],
    ["only intermediate ones", [{ ...present, isRoot: false }], "no root authority"],
    ["an intermediate one of the server's own", [{ ...present, isRoot: false }, authority("new")], "verifies the"],
    ["one of the server's own that is not valid yet", [{ ...present, notBeforeMs: NOW + 1 }], "verifies the server"],
    ["none of the server's own", [authority("new")], "verifies the server's own"],
    ["an expired one of the server's own", [{ ...present, notAfterMs: NOW }, authority("new")], "verifies the server"],
    ["17", Array.from({ length: 17 }, (_, at) => authority(`${at}`, { isVerifying: true })), "more than 16"],
  ])("should refuse %s", (_, announced, problem) => {
    const decision = decideAuthorities(announced, ["old"], NOW);
    expect(decision).toEqual({ kind: "refuse", problem: expect.stringContaining(problem) });
  });

  it("should drop an intermediate one, and keep one that is not valid yet", () => {
    const intermediate = authority("intermediate", { isRoot: false });
    const future = authority("future", { notBeforeMs: NOW + 1, notAfterMs: NOW + 2 });
    const fingerprints = ["future", "old"];
    const decision = decideAuthorities([present, intermediate, future], ["old"], NOW);
    expect(decision).toEqual({ kind: "replace", fingerprints });
  });

  it("should drop an expired one and take 16", () => {
    const many = Array.from({ length: 15 }, (_, at) => authority(`${at}`));
    expect(decideAuthorities([present, ...many], ["old"], NOW).kind).toBe("replace");
    const expired = authority("expired", { notAfterMs: NOW });
    expect(decideAuthorities([present, expired], ["old"], NOW)).toEqual({ kind: "same" });
  });
});
