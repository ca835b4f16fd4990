import { randomBytes } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { checkReplicaCall, REPLICA_CREDENTIALS_TTL_MS, signReplicaCall } from "./replica-credentials.ts";

const SECRET = randomBytes(32);
const NOW_MS = 1_700_000_000_000;
const CALL = { from: "health-a.1", to: "health-b.2", method: "/s/M" };
const check = (header: string | null, wallMs = NOW_MS, secret: Uint8Array = SECRET) =>
  checkReplicaCall(secret, header, { to: CALL.to, method: CALL.method }, wallMs).kind;

describe("checkReplicaCall()", () => {
  it("should return the caller", () => {
    const header = signReplicaCall(SECRET, CALL, NOW_MS);
    expect(checkReplicaCall(SECRET, header, CALL, NOW_MS)).toEqual({
      kind: "valid",
      from: "health-a.1",
    });
    expect(header).not.toContain(SECRET.toString("hex"));
  });

  it.each([
    [0, "valid"],
    [REPLICA_CREDENTIALS_TTL_MS, "valid"],
    [-REPLICA_CREDENTIALS_TTL_MS, "valid"],
    [REPLICA_CREDENTIALS_TTL_MS + 1, "expired"],
    [-REPLICA_CREDENTIALS_TTL_MS - 1, "expired"],
  ])("should find them %d ms later %s", (laterMs, kind) => {
    expect(check(signReplicaCall(SECRET, CALL, NOW_MS), NOW_MS + laterMs)).toBe(kind);
  });

  it.each([
    ["nothing", () => null],
    ["a bearer token", () => "Bearer abc"],
    ["another replica", () => signReplicaCall(SECRET, { ...CALL, to: "health-c.3" }, NOW_MS)],
    ["another method", () => signReplicaCall(SECRET, { ...CALL, method: "/s/N" }, NOW_MS)],
    ["another secret", () => signReplicaCall(randomBytes(32), CALL, NOW_MS)],
    ["a later time", () => signReplicaCall(SECRET, CALL, NOW_MS).replace(".17", ".18")],
    ["a truncated MAC", () => signReplicaCall(SECRET, CALL, NOW_MS).slice(0, -1)],
  ])("should not know %s", (_, make) => {
    expect(check(make())).toBe("unknown");
  });
});
