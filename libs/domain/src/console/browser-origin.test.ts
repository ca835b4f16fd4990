import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { judgeBrowser } from "./browser-origin.ts";

const judge = (origin: string | null, authority: string, isPeerLocal = true, isNetworkTrusted = false) => {
  const verdict = judgeBrowser({ origin, authority, isPeerLocal, isNetworkTrusted });
  return verdict.ok ? verdict.isSecure : verdict.refusal.reason;
};

describe("judgeBrowser()", () => {
  it.each([
    ["http://127.0.0.1:7700", "127.0.0.1:7700", false],
    ["http://localhost:7700", "localhost:7700", false],
    ["http://localhost:7700", "LocalHost:7700", false],
    ["http://[::1]:7700", "[::1]:7700", false],
    ["http://localhost", "localhost", false],
    ["http://localhost", "localhost:80", false],
    ["https://localhost:7700", "localhost:7700", true],
    ["https://rollcall.example", "rollcall.example", true],
    ["https://rollcall.example", "rollcall.example:443", true],
    ["https://rollcall.example:8443", "rollcall.example:8443", true],
  ])("should take %s at %s", (origin, authority, isSecure) => {
    expect(judge(origin, authority)).toBe(isSecure);
  });

  it.each([
    // Another port of the same host is the same site, and another origin.
    ["http://127.0.0.1:3000", "127.0.0.1:7700"],
    ["http://localhost:7700", "127.0.0.1:7700"],
    ["https://localhost", "localhost:7700"],
    ["http://localhost", "localhost:443"],
    ["https://evil.example", "rollcall.example"],
    ["https://rollcall.example.evil.example", "rollcall.example"],
    ["https://evil.example@rollcall.example", "rollcall.example"],
    ["https://rollcall.example/", "rollcall.example"],
    ["https://rollcall.example ", "rollcall.example"],
    ["ftp://rollcall.example", "rollcall.example"],
    ["chrome-extension://rollcall.example", "rollcall.example"],
    ["file://", ""],
    ["null", "null"],
    ["null", "rollcall.example"],
    ["", ""],
    ["https://", ""],
    [null, "rollcall.example"],
  ])("should refuse %s at %s", (origin, authority) => {
    expect(judge(origin, authority)).toBe("ORIGIN_NOT_ALLOWED");
  });

  it("should take clear text on the loopback interface alone, unless the network encrypts by itself", () => {
    expect(judge("http://10.0.0.7:7700", "10.0.0.7:7700")).toBe("CONSOLE_NEEDS_TLS");
    expect(judge("http://rollcall.example", "rollcall.example", true, true)).toBe("CONSOLE_NEEDS_TLS");
    expect(judge("http://localhost.evil.example", "localhost.evil.example")).toBe("CONSOLE_NEEDS_TLS");
    expect(judge("http://localhost:7700", "localhost:7700", false)).toBe("CONSOLE_NEEDS_TLS");
    expect(judge("http://localhost:7700", "localhost:7700", false, true)).toBe(false);
    expect(judge("https://10.0.0.7:7700", "10.0.0.7:7700", false)).toBe(true);
  });

  it("should never take an origin of another host or port", () => {
    const name = fc.domain();
    const port = fc.integer({ min: 1, max: 65_535 });
    fc.assert(
      fc.property(name, port, name, port, fc.constantFrom("http", "https"), (from, fromPort, to, toPort, scheme) => {
        fc.pre(from !== to || fromPort !== toPort);
        expect(judge(`${scheme}://${from}:${fromPort}`, `${to}:${toPort}`)).toBe("ORIGIN_NOT_ALLOWED");
      }),
    );
  });
});
