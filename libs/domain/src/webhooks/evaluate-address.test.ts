import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { evaluateAddress } from "./evaluate-address.ts";
import { isInNetwork, type Network, networkProblem, parseIpAddress, parseNetwork, readNetwork } from "./network.ts";

function network(text: string): Network {
  const parsed = parseNetwork(text);
  if (parsed === null) throw new Error(`${text} is not a network`);
  return parsed;
}

describe("evaluateAddress()", () => {
  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:82a::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
  ])("should allow %s", (address) => {
    expect(evaluateAddress(address, [])).toEqual({ ok: true });
  });

  it.each([
    ["0.0.0.0", "this machine"],
    ["0.1.2.3", "this machine"],
    ["10.0.0.1", "private"],
    ["100.64.0.1", "for carrier-grade NAT"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["169.254.169.254", "link-local, where clouds serve metadata"],
    ["172.16.0.1", "private"],
    ["172.31.255.255", "private"],
    ["192.168.1.1", "private"],
    ["198.18.0.1", "for benchmarking"],
    ["224.0.0.1", "multicast"],
    ["255.255.255.255", "reserved"],
    ["::", "this machine or loopback"],
    ["::1", "this machine or loopback"],
    ["::127.0.0.1", "this machine or loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["::ffff:7f00:1", "loopback"],
    ["0:0:0:0:0:ffff:a9fe:a9fe", "link-local, where clouds serve metadata"],
    ["64:ff9b::7f00:1", "loopback"],
    ["64:ff9b::169.254.169.254", "link-local, where clouds serve metadata"],
    ["2002:7f00:1::", "loopback"],
    ["2002:a00:1::1", "private"],
    ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "for protocol assignments"],
    ["2001:db8::1", "for documentation"],
    ["fc00::1", "private"],
    ["fd00:ec2::254", "private"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["fec0::1", "private"],
    ["ff02::1", "multicast"],
    ["4000::1", "unassigned"],
    ["2130706433", "not an address"],
    ["0177.0.0.1", "not an address"],
    ["127.1", "not an address"],
    ["127.0.0.01", "not an address"],
    ["1:2:3", "not an address"],
    ["1::2::3", "not an address"],
    ["12345::", "not an address"],
    ["::1.2.3", "not an address"],
    ["", "not an address"],
  ])("should refuse %s", (address, kind) => {
    expect(evaluateAddress(address, [])).toEqual({ ok: false, kind });
  });

  it("should allow what is configured, and its forms as IPv6 alike", () => {
    const allowed = [network("10.1.0.0/16"), network("fd00::/8")];
    for (const address of ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1"]) {
      expect(evaluateAddress(address, allowed)).toEqual({ ok: true });
    }
    for (const address of ["10.2.0.1", "127.0.0.1", "fe80::1"])
      expect(evaluateAddress(address, allowed).ok).toBe(false);
  });

  it("should refuse every address of every form of a private network", () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const inPrivate = fc.tuple(octet, octet, octet).map(([b, c, d]) => [10, b, c, d] as const);
    fc.assert(
      fc.property(inPrivate, ([a, b, c, d]) => {
        const hex = (high: number, low: number) => ((high << 8) | low).toString(16);
        const forms = [
          `${a}.${b}.${c}.${d}`,
          `::ffff:${a}.${b}.${c}.${d}`,
          `::FFFF:${hex(a, b)}:${hex(c, d)}`,
          `64:ff9b::${hex(a, b)}:${hex(c, d)}`,
          `2002:${hex(a, b)}:${hex(c, d)}::1`,
        ];
        for (const form of forms) expect(evaluateAddress(form, []).ok).toBe(false);
      }),
    );
  });
});

describe("readNetwork()", () => {
  it.each([
    ["10.0.0.7", [10, 0, 0, 7], 32],
    ["10.0.0.0/8", [10, 0, 0, 0], 8],
    [" 10.1.2.3/8 ", [10, 1, 2, 3], 8],
    ["0.0.0.0/0", [0, 0, 0, 0], 0],
    ["::ffff:10.0.0.7", [10, 0, 0, 7], 32],
    ["::ffff:10.0.0.0/104", [10, 0, 0, 0], 8],
  ])("should read %s", (text, bytes, bits) => {
    expect(readNetwork(text)).toEqual({ ok: true, network: { bytes, bits } });
  });

  it.each([
    ["10.0.0.0/33", "needs a prefix length from 0 to 32"],
    ["10.0.0.0/", "needs a prefix length"],
    ["10.0.0.0/08", "needs a prefix length"],
    ["10.0.0.0/-1", "needs a prefix length"],
    ["10.0.0.0/255.0.0.0", "needs a prefix length"],
    ["::/129", "needs a prefix length from 0 to 128"],
    ["::ffff:10.0.0.0/8", "needs a prefix length from 96 to 128"],
    ["fe80::1%eth0", "a zone"],
    ["fe80::%eth0/10", "a zone"],
    ["10.0.0.0/8/8", "is not an IP address"],
    ["x/8", "is not an IP address"],
    ["10.0.0/8", "is not an IP address"],
    ["010.0.0.0/8", "is not an IP address"],
    ["10.0.0.0-10.0.0.9", "is not an IP address"],
    ["localhost", "is not an IP address"],
    ["[::1]", "is not an IP address"],
    ["", "is not an IP address"],
  ])("should refuse %s", (text, problem) => {
    expect(networkProblem(text)).toContain(problem);
  });

  it("should know the first and the last address of a network", () => {
    const half = network("10.0.0.128/25");
    const isIn = (text: string) => isInNetwork(parseIpAddress(text) ?? [], half);
    expect(["10.0.0.127", "10.0.0.128", "10.0.0.255", "10.0.1.0"].map(isIn)).toEqual([false, true, true, false]);
    expect(isInNetwork(parseIpAddress("::1") ?? [], network("0.0.0.0/0"))).toBe(false);
    expect(isInNetwork(parseIpAddress("1.2.3.4") ?? [], network("0.0.0.0/0"))).toBe(true);
  });
});
