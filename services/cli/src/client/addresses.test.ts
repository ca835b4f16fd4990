import { describe, expect, it } from "@jest/globals";
import { displayAddress, findAddresses, isLoopback } from "./addresses.ts";

const RUN_FILE = {
  pid: 1,
  server: "10.0.0.5:7700",
  agents: "10.0.0.5:7701",
  probes: "10.0.0.5:7790",
};

describe("findAddresses()", () => {
  it("should take the first of: flag, environment, run file, default", () => {
    const env = { ROLLCALL_SERVER: "env:1" };
    expect(findAddresses({ server: "flag:1" }, env, RUN_FILE).registry).toBe("http://flag:1");
    expect(findAddresses({}, env, RUN_FILE).registry).toBe("http://env:1");
    expect(findAddresses({}, {}, RUN_FILE).registry).toBe("http://10.0.0.5:7700");
    expect(findAddresses({}, {}, null).registry).toBe("http://127.0.0.1:7700");
  });

  it("should support services that are deployed separately", () => {
    const env = { ROLLCALL_HEALTH: "env:7711", ROLLCALL_SERVER: "env:7700" };
    expect(findAddresses({ registry: "r:7710" }, env, null)).toEqual({
      registry: "http://r:7710",
      health: "http://env:7711",
      admin: "http://env:7700",
      scheduler: "http://env:7700",
    });
    expect(findAddresses({ server: "flag:1" }, env, null).health).toBe("http://flag:1");
  });

  it.each([
    ["https://rollcall.example:7700/", "https://rollcall.example:7700"],
    ["HTTPS://Rollcall.example:7700", "https://rollcall.example:7700"],
    ["http://rollcall.example", "http://rollcall.example"],
    ["[::1]:7700", "http://[::1]:7700"],
    ["localhost:7700", "http://localhost:7700"],
    ["https://proxy.example/rollcall/", "https://proxy.example/rollcall"],
  ])("should take %s", (text, url) => {
    expect(findAddresses({ server: text }, {}, null).admin).toBe(url);
  });

  it.each([
    ["localhost", "localhost", "it has no port"],
    ["a b:1", "a b:1", "its host is invalid"],
    ["host:99999", "host:99999", "its port must be from 1 to 65535"],
    ["ftp://host:1", "ftp://host:1", "its scheme is not http or https"],
    ["https://me:secret@host:1", "https://***@host:1", "it must have no user and no password"],
    ["[fe80::1%eth0]:1", "[fe80::1%eth0]:1", "an IPv6 address cannot have a zone here"],
  ])("should refuse %s", (text, shown, reason) => {
    expect(() => findAddresses({ server: text }, {}, null)).toThrow(
      `cannot use '${shown}' from --server as an address, should be HOST:PORT or a URL such as ` +
        `https://rollcall.example:7700: ${reason}`,
    );
  });
});

describe("isLoopback()", () => {
  it.each([
    ["http://127.0.0.1:7700", true],
    ["http://127.8.0.1:7700", true],
    ["http://localhost:7700", true],
    ["http://[::1]:7700", true],
    ["http://127.0.0.1.evil.example:7700", false],
    ["http://10.0.0.5:7700", false],
  ])("should classify %s", (url, loopback) => {
    expect(isLoopback(url)).toBe(loopback);
  });
});

describe("displayAddress()", () => {
  it("should show the port", () => {
    expect(displayAddress("http://127.0.0.1:7700")).toBe("127.0.0.1:7700");
    expect(displayAddress("https://rollcall.example")).toBe("https://rollcall.example:443");
  });
});
