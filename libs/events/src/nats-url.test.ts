import { describe, expect, it } from "@jest/globals";
import { parseNatsUrl } from "./nats-url.ts";

describe("parseNatsUrl()", () => {
  it.each([
    ["nats://nats:4222", "nats://nats:4222"],
    ["nats://nats.example/", "nats://nats.example:4222"],
    ["tls://nats.example:7000", "tls://nats.example:7000"],
    ["TLS://nats.example", "tls://nats.example:4222"],
    ["127.0.0.1:80", "nats://127.0.0.1:80"],
    ["nats", "nats://nats:4222"],
    ["nats://[::1]:4223", "nats://[::1]:4223"],
  ])("should read %s", (text, shown) => {
    expect(String(parseNatsUrl(text))).toBe(shown);
    expect(parseNatsUrl(text)?.credentials).toBeNull();
  });

  it.each([
    "",
    "nats://",
    "http://nats:4222",
    "ws://nats:4222",
    "nats://nats:99999",
    "nats://a,b:4222",
    "nats://nats:4222/path",
    "nats://nats?x=1",
    "nats://:password@nats",
    "nats://%zz@nats",
    "two words",
  ])("should refuse %j", (text) => {
    expect(parseNatsUrl(text)).toBeNull();
  });

  it("should read a user and a password, and show neither", () => {
    const url = parseNatsUrl("nats://rollcall:s3cr%40t@nats:4222");
    expect(url?.credentials).toEqual({ kind: "password", user: "rollcall", password: "s3cr@t" });
    expect(`${url} ${JSON.stringify(url)} ${url?.address}`).toBe('nats://nats:4222 "nats://nats:4222" nats:4222');
    expect(Object.values(url ?? {}).join()).not.toContain("s3cr");
  });

  it("should read a token, and not show it", () => {
    const url = parseNatsUrl("s3cret@nats");
    expect(url?.credentials).toEqual({ kind: "token", token: "s3cret" });
    expect(String(url)).toBe("nats://nats:4222");
  });
});
