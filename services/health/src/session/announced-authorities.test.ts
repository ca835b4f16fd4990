import { X509Certificate } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { afterAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { followAuthorities } from "./announced-authorities.ts";

describe("followAuthorities()", () => {
  const authorities = [new TestAuthority(), new TestAuthority()];
  afterAll(() => {
    for (const { dir } of authorities) rmSync(dir, { recursive: true, force: true });
  });
  const certificates = authorities.map(({ caFile }) => new X509Certificate(readFileSync(caFile)));

  it("should change only when its source has different authorities, in any order", () => {
    const source = { authorities: certificates };
    const feed = followAuthorities(source);
    const first = feed.current;
    expect(first?.certificates).toEqual(certificates.map(({ raw }) => raw));
    source.authorities = certificates.toReversed();
    expect(feed.current).toBe(first);
    source.authorities = certificates.slice(0, 1);
    expect(feed.current?.certificates).toHaveLength(1);
    source.authorities = [];
    expect(feed.current).toBeNull();
  });
});
