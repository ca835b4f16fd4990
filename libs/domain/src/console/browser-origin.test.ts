import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { checkBrowserOrigin } from "./browser-origin.ts";

const evaluate = (origin: string | null, authority: string, isPeerLocal = true, isNetworkTrusted = false) => {
  const decision = checkBrowserOrigin({ origin, authority, isPeerLocal, isNetworkTrusted });
  return decision.ok ? decision.isSecure : decision.refusal.reason;
};

describe("checkBrowserOrigin()", () => {
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
    expect(evaluate(origin, authority)).toBe(isSecure);
  });

  it.each([
    // The port differs, but the host is the same: the same site, but another origin.
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
    expect(evaluate(origin, authority)).toBe("ORIGIN_NOT_ALLOWED");
  });

  it("should accept unencrypted calls only on the loopback interface, unless the network encrypts", () => {
    expect(evaluate("http://10.0.0.7:7700", "10.0.0.7:7700")).toBe("CONSOLE_NEEDS_TLS");
    expect(evaluate("http://rollcall.example", "rollcall.example", true, true)).toBe("CONSOLE_NEEDS_TLS");
    expect(evaluate("http://localhost.evil.example", "localhost.evil.example")).toBe("CONSOLE_NEEDS_TLS");
    expect(evaluate("http://localhost:7700", "localhost:7700", false)).toBe("CONSOLE_NEEDS_TLS");
    expect(evaluate("http://localhost:7700", "localhost:7700", false, true)).toBe(false);
    expect(evaluate("https://10.0.0.7:7700", "10.0.0.7:7700", false)).toBe(true);
  });

  it("should never take an origin of another host or port", () => {
    const name = fc.domain();
    const port = fc.integer({ min: 1, max: 65_535 });
    fc.assert(
      fc.property(name, port, name, port, fc.constantFrom("http", "https"), (from, fromPort, to, toPort, scheme) => {
        fc.pre(from !== to || fromPort !== toPort);
        expect(evaluate(`${scheme}://${from}:${fromPort}`, `${to}:${toPort}`)).toBe("ORIGIN_NOT_ALLOWED");
      }),
    );
  });
});
