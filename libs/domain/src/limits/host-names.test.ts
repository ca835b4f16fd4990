import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { isRequestForUs } from "./host-names.ts";

const NAMES = ["machine-7", "rollcall.example.org", "*.fleet.example.org"];

/** Whether the server answers a browser's requests to this authority. */
const isHostAllowed = (authority: string, names: readonly string[]) =>
  isRequestForUs({ method: "GET", authority, hasBrowserHeaders: false }, names);

describe("isRequestForUs()", () => {
  it.each([
    // This machine.
    ["localhost", true],
    ["localhost:7700", true],
    ["LocalHost.:7700", true],
    ["console.localhost:7700", true],
    // Addresses.
    ["127.0.0.1", true],
    ["127.0.0.1:7700", true],
    ["10.1.2.3:80", true],
    ["[::1]:7700", true],
    ["[fe80::1]", true],
    // Configured.
    ["machine-7:7700", true],
    ["MACHINE-7", true],
    ["rollcall.example.org.", true],
    ["a.fleet.example.org", true],
    ["a.b.fleet.example.org:7700", true],
    // Neither of them.
    ["evil.example", false],
    ["evil.example:7700", false],
    ["127.0.0.1.evil.example", false],
    ["localhost.evil.example", false],
    ["evil-localhost", false],
    ["machine-7.evil.example", false],
    ["fleet.example.org", false],
    [".fleet.example.org", false],
    ["notfleet.example.org", false],
    ["xn--80ak6aa92e.com", false],
    // Notations of addresses that browsers do not send.
    ["2130706433", false],
    ["0x7f.0.0.1", false],
    ["127.0.0.256", false],
    ["127.1", false],
    // Invalid authorities.
    ["127.0.0.1@evil.example", false],
    ["evil.example#localhost", false],
    ["[::1].evil.example", false],
    ["localhost:7700:1", false],
    ["a b", false],
    ["::1", false],
    // A browser always sends an authority, so a request without one is allowed.
    ["", true],
  ])("should say of %j: %s", (authority, expected) => {
    expect(isHostAllowed(authority, NAMES)).toBe(expected);
  });

  it("should take any name where that is configured", () => {
    expect(isHostAllowed("anything.example:1", ["*"])).toBe(true);
    expect(isHostAllowed("anything.example:1", [])).toBe(false);
  });

  it("should never take a name that only ends or begins like one that is allowed", () => {
    const label = fc.stringMatching(/^[a-z]{1,8}$/);
    fc.assert(
      fc.property(fc.constantFrom("localhost", ...NAMES), label, (name, other) => {
        const exact = name.replace(/^\*\./, "");
        expect(isHostAllowed(`${exact}.${other}x.test`, NAMES)).toBe(false);
        expect(isHostAllowed(`${other}${exact}.test`, NAMES)).toBe(false);
      }),
    );
  });

  it.each([
    ["POST", false, true],
    ["POST", true, false],
    ["GET", false, false],
    ["HEAD", false, false],
    ["OPTIONS", false, false],
    ["GET", true, false],
  ])(
    "should ask of %s, browser's headers %s, under another name: allowed %s",
    (method, hasBrowserHeaders, expected) => {
      const request = { method, hasBrowserHeaders, authority: "evil.example:7700" };
      expect(isRequestForUs(request, NAMES)).toBe(expected);
      expect(isRequestForUs({ ...request, authority: "machine-7:7700" }, NAMES)).toBe(true);
    },
  );
});
