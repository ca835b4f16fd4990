import { describe, expect, it } from "@jest/globals";
import { canUseSecret, isSecretGrant } from "./secret-grants.ts";

describe("canUseSecret()", () => {
  const use = (grants: readonly string[], owner: string, job: string) =>
    canUseSecret([{ name: "password", grants }], "password", { owner, job });

  it.each<[readonly string[], string, string, boolean]>([
    [[], "token:ci", "web", false],
    [["token:ci/web"], "token:ci", "web", true],
    [["token:ci/web"], "token:ci", "web-2", false],
    [["token:ci/web"], "token:ci2", "web", false],
    [["token:ci/web"], "user:ci", "web", false],
    [["token:ci/web-*"], "token:ci", "web-2", true],
    [["token:ci/web-*"], "token:ci", "web", false],
    [["token:ci/*"], "token:ci", "anything", true],
    [["token:*/web"], "token:other", "web", true],
    [["token:*/web"], "user:other", "web", false],
    [["*/web"], "user:other", "web", true],
    [["*/*"], "user:other", "any", true],
    [["user:issuer/alice/web"], "user:issuer/alice", "web", true],
    [["user:issuer/alice/web"], "user:issuer", "alice/web", false],
    // Require a single grant that names both owner and job.
    [["token:ci/web", "token:ops/backup"], "token:ops", "web", false],
    [["token:ci/web", "token:ops/backup"], "token:ops", "backup", true],
  ])("should compare %j with %s/%s: %s", (grants, owner, job, expected) => {
    expect(use(grants, owner, job)).toBe(expected);
  });

  it("should grant nothing of a secret that is not listed", () => {
    const secrets = [{ name: "password", grants: ["*/*"] }];
    expect(canUseSecret(secrets, "key", { owner: "token:ci", job: "web" })).toBe(false);
  });
});

describe("isSecretGrant()", () => {
  it.each(["token:ci/web", "user:alice@example.org/web-*", "user:issuer/alice/web", "token:*/*", "*/web", "*/*"])(
    "should accept %s",
    (text) => expect(isSecretGrant(text)).toBe(true),
  );

  it.each(["", "web", "ci/web", "token:ci", "token:ci/", "token:/web", "/web", "token:ci/we*b", "token:c i/web", "*"])(
    "should refuse %j",
    (text) => expect(isSecretGrant(text)).toBe(false),
  );
});
