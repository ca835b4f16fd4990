import { X509Certificate } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { TestAuthority } from "@rollcall/testkit/certificates";
import { authoritiesOf, isRoot } from "./trust-path.ts";

describe("authoritiesOf()", () => {
  const certificateIn = (pem: string) => new X509Certificate(pem);
  let ours: TestAuthority;
  let others: TestAuthority;
  beforeAll(() => {
    ours = new TestAuthority();
    others = new TestAuthority();
  });
  afterAll(() => {
    for (const { dir } of [ours, others]) rmSync(dir, { recursive: true, force: true });
  });
  const rootOf = ({ caFile }: TestAuthority) => certificateIn(readFileSync(caFile, "utf8"));

  it("should find the authority that signed, not another with the same name", () => {
    const leaf = certificateIn(ours.issue().certPem);
    const [root, other] = [rootOf(ours), rootOf(others)];
    expect(authoritiesOf([leaf], [other, root])).toEqual([root]);
    expect(authoritiesOf([leaf], [other])).toEqual([]);
  });

  it("should not count an authority that is only in the chain", () => {
    const leaf = certificateIn(ours.issue().certPem);
    expect(authoritiesOf([leaf, rootOf(others)], [rootOf(others)])).toEqual([]);
  });

  it("should follow a cross-signed certificate to its root", () => {
    const leaf = certificateIn(others.issue().certPem);
    const crossSigned = certificateIn(ours.crossSign(others));
    expect([rootOf(ours), rootOf(others), crossSigned, leaf].map(isRoot)).toEqual([true, true, false, false]);
    expect(authoritiesOf([leaf, crossSigned], [crossSigned, rootOf(ours)])).toEqual([rootOf(ours)]);
    expect(authoritiesOf([leaf], [crossSigned])).toEqual([]);
    expect(authoritiesOf([leaf], [leaf])).toEqual([]);
  });

  it("should accept a trusted self-signed certificate, and find nothing for an empty chain", () => {
    const root = rootOf(ours);
    expect(authoritiesOf([root], [root])).toEqual([root]);
    expect(authoritiesOf([], [root])).toEqual([]);
  });
});
