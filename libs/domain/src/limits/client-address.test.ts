import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { clientAddress, type HostKind, plainHost } from "./client-address.ts";

const PROXIES = new Set(["10.0.0.1", "10.0.0.2", "2001:db8::a", "::ffff:10.0.0.1"]);
const ADDRESS = /^(\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F:]*:[0-9a-fA-F:.]*)$/;
const PROXY = "10.0.0.1:4711";

function evaluate(host: string): HostKind {
  if (PROXIES.has(host)) return "proxy";
  return ADDRESS.test(host) ? "other" : "invalid";
}

function byX(xForwardedFor: string | undefined, peer = PROXY): string {
  return clientAddress(peer, { xForwardedFor, forwarded: undefined }, evaluate);
}

function byForwarded(forwarded: string, peer = PROXY): string {
  return clientAddress(peer, { xForwardedFor: undefined, forwarded }, evaluate);
}

describe("clientAddress()", () => {
  it.each([
    ["nothing", undefined, PROXY],
    ["one caller", "192.0.2.7", "192.0.2.7"],
    ["one caller with a port", "192.0.2.7:1234", "192.0.2.7:1234"],
    ["one caller of IPv6", "2001:DB8::7", "[2001:db8::7]"],
    ["one caller of IPv6 in brackets", "[2001:db8::7]", "[2001:db8::7]"],
    ["one caller of IPv6 with a port", "[2001:db8::7]:1234", "[2001:db8::7]:1234"],
    ["a caller who wrote a chain", "198.51.100.1, 127.0.0.1, 192.0.2.7", "192.0.2.7"],
    ["a chain of proxies", "192.0.2.7, 10.0.0.2", "192.0.2.7"],
    ["a caller who names a proxy", "10.0.0.2, 192.0.2.7, 10.0.0.2", "192.0.2.7"],
    ["proxies alone", "10.0.0.2", "10.0.0.2"],
    ["blanks and tabs", " 192.0.2.7 ,\t10.0.0.2 ", "192.0.2.7"],
    ["nothing between commas", "192.0.2.7,,", PROXY],
    ["an empty header", "", PROXY],
    ["a hidden caller", "unknown", PROXY],
    ["a hidden caller behind a second proxy", "unknown, 10.0.0.2", "10.0.0.2"],
    ["rubbish at the end", "192.0.2.7, %%%", PROXY],
    ["a name", "client.example", PROXY],
    ["rubbish that a caller wrote", "'; drop table, 192.0.2.7", "192.0.2.7"],
    ["a port that is none", "192.0.2.7:port", PROXY],
    ["an address that is none", "1.2.3.4.5", PROXY],
    ["an address behind a word", "for 192.0.2.7", PROXY],
    ["brackets behind a word", "by[2001:db8::7]", PROXY],
    ["brackets before a word", "[2001:db8::7]by", PROXY],
  ])("should interpret X-Forwarded-For with %s", (_, header, client) => {
    expect(byX(header)).toBe(client);
  });

  it.each([
    ["for=192.0.2.7", "192.0.2.7"],
    ["For=192.0.2.7;proto=https;by=10.0.0.1", "192.0.2.7"],
    ['by=10.0.0.1; for="192.0.2.7:1234"', "192.0.2.7:1234"],
    ['for="[2001:db8::7]:1234"', "[2001:db8::7]:1234"],
    ["for=198.51.100.1, for=192.0.2.7, for=10.0.0.2", "192.0.2.7"],
    ['for="_a,b", for=192.0.2.7', "192.0.2.7"],
    ['for="\\1\\9\\2.0.2.7"', "192.0.2.7"],
    ["for=192.0.2.7, for=_hidden", PROXY],
    ["for=192.0.2.7, for=unknown", PROXY],
    ["for=192.0.2.7, proto=https", PROXY],
    ["for=192.0.2.7;for=198.51.100.1", PROXY],
    ['for=192.0.2.7, for="never closed', PROXY],
    ['for="never closed, for=192.0.2.7', PROXY],
    ['for="_a\\", for="_b", for=192.0.2.7', PROXY],
    ['for="192.0.2.7"x', PROXY],
    ['for=x"192.0.2.7"', PROXY],
    ["", PROXY],
  ])("should interpret Forwarded: %s", (header, client) => {
    expect(byForwarded(header)).toBe(client);
  });

  it("should go by X-Forwarded-For where there are both, since the other may be the caller's own", () => {
    const headers = { xForwardedFor: "192.0.2.7", forwarded: "for=203.0.113.9" };
    expect(clientAddress(PROXY, headers, evaluate)).toBe("192.0.2.7");
    expect(clientAddress(PROXY, { ...headers, xForwardedFor: "" }, evaluate)).toBe(PROXY);
  });

  it.each([
    ["[2001:db8::a]:4711", "192.0.2.7"],
    ["[::ffff:10.0.0.1]:4711", "192.0.2.7"],
    ["[2001:db8::a%eth0]:4711", "192.0.2.7"],
    ["10.0.0.3:4711", "10.0.0.3:4711"],
    ["127.0.0.1:4711", "127.0.0.1:4711"],
    ["[::1]:4711", "[::1]:4711"],
    ["", ""],
    ["unix:/tmp/socket", "unix:/tmp/socket"],
  ])("should heed the peer %s only where it is a trusted proxy", (peer, client) => {
    expect(byX("192.0.2.7", peer)).toBe(client);
  });

  const headers = fc.record({
    xForwardedFor: fc.option(fc.string(), { nil: undefined }),
    forwarded: fc.option(fc.string(), { nil: undefined }),
  });

  it("should ignore a header of an untrusted peer", () => {
    fc.assert(
      fc.property(headers, (sent) => {
        expect(clientAddress("192.0.2.1:5", sent, evaluate)).toBe("192.0.2.1:5");
      }),
    );
  });

  it("should ignore what a caller writes in front of the proxy's entry", () => {
    fc.assert(
      fc.property(fc.string(), (spoofed) => {
        expect(byX(`${spoofed}, 192.0.2.7`)).toBe("192.0.2.7");
        expect(byX(`${spoofed}, 192.0.2.7, 10.0.0.2`)).toBe("192.0.2.7");
      }),
    );
  });

  it("should return an address, whatever a trusted proxy sends", () => {
    const texts = fc.stringMatching(/^[0-9a-f:.,;="\\[\] _]{0,60}$/);
    fc.assert(
      fc.property(texts, texts, (one, other) => {
        for (const client of [byX(one), byForwarded(other), byForwarded(`for=${other}`)]) {
          const host = /^\[([^\]]+)\](?::\d+)?$/.exec(client)?.[1] ?? client.replace(/:\d+$/, "");
          expect(evaluate(host)).not.toBe("invalid");
        }
      }),
    );
  });
});

describe("plainHost()", () => {
  it.each([
    ["192.0.2.1:4711", "192.0.2.1"],
    ["192.0.2.1", "192.0.2.1"],
    ["[2001:DB8::1]:4711", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[fe80::1%eth0]:4711", "fe80::1"],
    ["[::ffff:192.0.2.1]:4711", "192.0.2.1"],
    [":0", null],
    ["", null],
  ])("should read %s as %s", (peer, host) => {
    expect(plainHost(peer)).toBe(host);
  });
});
