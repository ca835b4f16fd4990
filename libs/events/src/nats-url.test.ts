import { describe, expect, it } from "@jest/globals";
import { type NatsUrl, readNatsUrl } from "./nats-url.ts";

function urlOf(text: string): NatsUrl {
  const read = readNatsUrl(text);
  if (!read.ok) throw new Error(read.reason);
  return read.url;
}

describe("readNatsUrl()", () => {
  it.each([
    ["nats://nats:4222", "nats://nats:4222"],
    ["nats://nats.example/", "nats://nats.example:4222"],
    ["tls://nats.example:7000", "tls://nats.example:7000"],
    ["TLS://Nats.example", "tls://nats.example:4222"],
    ["127.0.0.1:80", "nats://127.0.0.1:80"],
    ["nats", "nats://nats:4222"],
    ["nats.example.", "nats://nats.example.:4222"],
    [" nats ", "nats://nats:4222"],
    ["nats://[::1]:4223", "nats://[::1]:4223"],
    ["[::1]", "nats://[::1]:4222"],
  ])("should read %s", (text, shown) => {
    expect(String(urlOf(text))).toBe(shown);
    expect(urlOf(text).credentials).toBeNull();
  });

  it.each([
    ["", "it has no host"],
    ["nats://", "it has no host"],
    ["http://nats:4222", "its scheme is not nats or tls"],
    ["ws://nats:4222", "its scheme is not nats or tls"],
    ["nats://nats:99999", "its port"],
    ["nats://nats:0", "its port"],
    ["nats://nats:", "its port"],
    ["nats://a,b:4222", "its host is invalid"],
    ["nats://nats:4222/path", "no path"],
    ["nats://nats?x=1", "no query"],
    ["nats://:hunter2@nats", "its user is empty"],
    ["nats://me:hunter%zz@nats", "percent-encoded"],
    ["nats://me:hunter#2@nats", "percent-encoded"],
    ["nats://::1:4222", "brackets"],
    ["nats://[fe80::1%25eth0]:4222", "zone"],
    ["nats://b\u00fccher.example", "not in ASCII"],
    ["two words", "its host is invalid"],
  ])("should refuse %j", (text, reason) => {
    const read = readNatsUrl(text);
    expect(read).toEqual({ ok: false, reason: expect.stringContaining(reason) });
    expect(JSON.stringify(read)).not.toContain("hunter");
  });

  it("should read a user and a password, and show neither", () => {
    const url = urlOf("nats://rollcall:s3cr%40t@nats:4222");
    expect(url.credentials).toEqual({ kind: "password", user: "rollcall", password: "s3cr@t" });
    expect(`${url} ${JSON.stringify(url)} ${url.address}`).toBe('nats://nats:4222 "nats://nats:4222" nats:4222');
    expect(Object.values(url).join()).not.toContain("s3cr");
  });

  it("should read a token, and not show it", () => {
    const url = urlOf("s3cret@nats");
    expect(url.credentials).toEqual({ kind: "token", token: "s3cret" });
    expect(String(url)).toBe("nats://nats:4222");
  });
});
