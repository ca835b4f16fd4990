import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "@rollcall/config";
import { parseProxy, proxyRule, shownProxy } from "./proxy.ts";

describe("parseProxy()", () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;

  it.each([
    ["http://proxy.example:3128", { host: "proxy.example", port: 3128, isSecure: false, authorization: null }],
    ["http://proxy.example:3128/", { host: "proxy.example", port: 3128, isSecure: false, authorization: null }],
    ["proxy.example:3128", { host: "proxy.example", port: 3128, isSecure: false, authorization: null }],
    ["http://proxy.example", { host: "proxy.example", port: 80, isSecure: false, authorization: null }],
    ["http://[2001:db8::1]:3128", { host: "2001:db8::1", port: 3128, isSecure: false, authorization: null }],
    ["http://me:p%40ss@10.0.0.7:1", { host: "10.0.0.7", port: 1, isSecure: false, authorization: basic("me:p@ss") }],
    ["https://proxy.example:3129", { host: "proxy.example", port: 3129, isSecure: true, authorization: null }],
    ["https://proxy.example", { host: "proxy.example", port: 443, isSecure: true, authorization: null }],
    ["HTTP://Proxy.example:3128", { host: "proxy.example", port: 3128, isSecure: false, authorization: null }],
    ["http://me@10.0.0.7:1", { host: "10.0.0.7", port: 1, isSecure: false, authorization: basic("me:") }],
  ])("should read %s", (text, proxy) => {
    expect(parseProxy(text)).toEqual(proxy);
  });

  it.each([
    [""],
    ["socks5://a:1"],
    ["http://a:1/path"],
    ["http://"],
    ["http://a:99999"],
    ["http://%:x@a"],
    ["http://a:1/x@b"],
    ["http://a:1#x"],
    ["[fe80::1%e]:1"],
  ])("should refuse %j", (text) => {
    expect(parseProxy(text)).toBeNull();
  });
});

describe("shownProxy()", () => {
  it("should omit user and password", () => {
    const proxy = parseProxy("http://me:secret@[::2]:3128");
    expect(proxy && shownProxy(proxy)).toBe("http://[::2]:3128");
  });
});

describe("proxyRule()", () => {
  const proxy = parseProxy("http://proxy.example:3128");
  const isProxied = (exceptions: string, target: string) => {
    const address = parseAddress(target);
    if (address === null) throw new Error(target);
    return proxyRule(proxy, exceptions.split(","))(address) === proxy;
  };

  it.each([
    ["", "a.example:7700", true],
    ["*", "a.example:7700", false],
    ["a.example", "a.example:7700", false],
    ["a.example", "A.Example:7700", false],
    ["a.example", "b.a.example:7700", false],
    ["a.example", "ba.example:7700", true],
    [".a.example", "b.a.example:7700", false],
    ["*.a.example", "b.a.example:7700", false],
    ["x, a.example", "a.example:7700", false],
    ["a.example:7700", "a.example:7700", false],
    ["a.example:7700", "a.example:7701", true],
    ["10.1.2.3", "10.1.2.3:7700", false],
    ["10.1.2.3", "10.1.2.30:7700", true],
    ["10.0.0.0/8", "10.1.2.3:7700", false],
    ["10.0.0.0/8", "11.1.2.3:7700", true],
    ["10.0.0.0/99", "10.1.2.3:7700", true],
    ["2001:db8::1", "[2001:db8:0::1]:7700", false],
    ["[2001:db8::1]:7700", "[2001:db8::1]:7700", false],
    ["[2001:db8::1]:7700", "[2001:db8::1]:7701", true],
    ["2001:db8::/32", "[2001:db8:1::1]:7700", false],
    ["2001:db8::/32", "[2001:db9::1]:7700", true],
    ["", "127.0.0.1:7700", false],
    ["", "127.9.9.9:7700", false],
    ["", "[::1]:7700", false],
    ["", "localhost:7700", false],
    ["", "a.localhost:7700", false],
  ])("should decide with NO_PROXY=%s about %s: %s", (exceptions, target, expected) => {
    expect(isProxied(exceptions, target)).toBe(expected);
  });

  it("should use no proxy if there is none", () => {
    expect(proxyRule(null, [])({ host: "a.example", port: 1 })).toBeNull();
  });
});
