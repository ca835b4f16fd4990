import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { readServerAddress, shownAddress } from "./server-address.ts";

interface Vector {
  readonly text: string;
  readonly tls?: boolean;
  readonly url?: string;
  readonly refused?: string;
}

/** Test vectors that the tests of the SDKs use as well. */
const VECTORS: readonly Vector[] = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../../sdk/vectors/addresses.json"), "utf8"),
);

describe("readServerAddress()", () => {
  it.each(VECTORS.map((vector) => [JSON.stringify(vector.text), vector] as const))("should read %s", (_, vector) => {
    const { text, tls = false, url, refused } = vector;
    const read = readServerAddress(text);
    if (refused !== undefined) {
      expect(read).toEqual({ ok: false, reason: expect.stringContaining(refused) });
      expect(`${JSON.stringify(read)} ${shownAddress(text)}`).not.toContain("hunter2");
      return;
    }
    if (!read.ok) throw new Error(read.reason);
    const { host, port, scheme = tls ? "https" : "http" } = read.address;
    expect(`${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`).toBe(url);
  });

  it("should keep a path where there can be one", () => {
    expect(readServerAddress("https://a.example/rollcall/", { paths: true })).toEqual({
      ok: true,
      address: { host: "a.example", port: 443, scheme: "https" },
      path: "/rollcall",
    });
    expect(readServerAddress("https://a.example/a b", { paths: true })).toMatchObject({ ok: false });
  });
});

describe("shownAddress()", () => {
  it.each([
    ["a.example:1", "a.example:1"],
    ["https://me:secret@a.example", "https://***@a.example"],
    ["me:sec/r#e?t@a.example:1", "***@a.example:1"],
    ["https://a.example/?token=secret", "https://a.example/"],
  ])("should leave out what may be secret in %s", (text, shown) => {
    expect(shownAddress(text)).toBe(shown);
  });
});
