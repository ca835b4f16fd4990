import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "@jest/globals";
import { RegisterNodeResponseSchema } from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { describeError, refuse } from "@rollcall/errors";
import { failureOf, RpcFixture } from "../../test/rpc-fixture.ts";
import { FailedAttempts, type FailureLimits } from "./failed-attempts.ts";

const PROOF = { nonce: new Uint8Array(16), signature: new Uint8Array(64) };
let fixture: RpcFixture;
afterEach(async () => await fixture.stop());

/** Limits that block given addresses, and record how they are called. */
class FakeLimits implements FailureLimits {
  readonly heard: string[] = [];
  waitMs = 0;
  msUntilAllowed(): number {
    return this.waitMs;
  }
  failed(peer: string, credential: string): void {
    this.heard.push(`failed ${peer.replace(/:\d+$/, "")} ${credential}`);
  }
  passed(credential: string): void {
    this.heard.push(`passed ${credential}`);
  }
}

describe("failed attempts of nodes", () => {
  it("should count by node and host, and be refused above the limit", async () => {
    const node = new FakeLimits();
    const token = new FakeLimits();
    const failures = new FailedAttempts({ node, token }, { nowMs: () => 0 });
    let error: Error | null = refuse("PROOF_INVALID", "no signature");
    let calls = 0;
    const registerNode = () => {
      calls += 1;
      if (error !== null) throw error;
      return create(RegisterNodeResponseSchema);
    };
    fixture = await RpcFixture.start({ registry: { registerNode }, failures });
    const register = () => fixture.registry("grpc").registerNode({ nodeId: "n1", proof: PROOF, info: {} });
    const request = async () => describeError(await failureOf(register())).reason;
    expect(await request()).toBe("PROOF_INVALID");
    expect(node.heard).toEqual(["failed 127.0.0.1 127.0.0.1 n1"]);
    error = refuse("NODE_REJECTED", "it is itself, and may not come in");
    await request();
    expect(node.heard).toHaveLength(1);
    error = null;
    await register();
    expect(node.heard.at(-1)).toBe("passed 127.0.0.1 n1");
    node.waitMs = 500;
    const before = calls;
    const limited = describeError(await failureOf(register()));
    expect(limited).toMatchObject({ reason: "TOO_MANY_FAILURES", retryAfterMs: 500 });
    expect(calls).toBe(before);
    expect(token.heard).toEqual([]);
  });
});
