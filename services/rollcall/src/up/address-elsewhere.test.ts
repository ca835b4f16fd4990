import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { silentLogger } from "@rollcall/process";
import { addressElsewhere, externalAddresses, type Interfaces } from "./address-elsewhere.ts";
import { keepDevelopmentCertificates } from "./development-certificates.ts";

const entry = (address: string, internal = false): NonNullable<Interfaces[string]>[number] => {
  const common = { address, mac: "00:00:00:00:00:00", internal, netmask: "", cidr: null };
  return address.includes(":") ? { ...common, family: "IPv6", scopeid: 0 } : { ...common, family: "IPv4" };
};
const INTERFACES: Interfaces = {
  lo: [entry("127.0.0.1", true), entry("::1", true)],
  eth0: [entry("fe80::1"), entry("2001:db8::7"), entry("10.0.0.7")],
  gone: undefined,
};

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "rollcall-elsewhere-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

async function certificateFor(...names: readonly string[]): Promise<string> {
  const clock = { wallMs: () => Date.UTC(2026, 0, 1) };
  const files = await keepDevelopmentCertificates({ dir: join(dir, names.join()), names, clock, log: silentLogger });
  return readFileSync(files.certFile, "utf8");
}

describe("externalAddresses()", () => {
  it("should name what other machines can reach, IPv4 first", () => {
    expect(externalAddresses(INTERFACES)).toEqual(["10.0.0.7", "2001:db8::7"]);
  });
});

describe("addressElsewhere()", () => {
  const find = (host: string, certificate: string | null = null, interfaces = INTERFACES) =>
    addressElsewhere({ host, port: 7700 }, certificate, interfaces);

  it.each(["127.0.0.1", "::1", "localhost"])("should know none for %s", (host) => {
    expect(find(host)).toBeNull();
  });

  it("should take the address that the server listens on", () => {
    expect(find("10.0.0.9")).toBe("10.0.0.9:7700");
    expect(find("2001:db8::9")).toBe("[2001:db8::9]:7700");
  });

  it("should take an address of the machine when the server listens on all", () => {
    expect(find("0.0.0.0")).toBe("10.0.0.7:7700");
    expect(find("0.0.0.0", null, {})).toBeNull();
  });

  it("should accept the names of the certificate", async () => {
    expect(find("0.0.0.0", await certificateFor("localhost", "box", "10.0.0.7"))).toBe("10.0.0.7:7700");
    expect(find("0.0.0.0", await certificateFor("localhost", "*.example", "rollcall.example"))).toBe(
      "rollcall.example:7700",
    );
    expect(find("10.0.0.7", await certificateFor("localhost"))).toBeNull();
  });
});
