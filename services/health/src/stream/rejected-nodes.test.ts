import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { proofText } from "@rollcall/domain";
import { generateKeyPair, keyFingerprint, signProof } from "@rollcall/identity";
import type { EventRow } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { Candidate } from "./hello-arrival.ts";
import { RejectedNodes } from "./rejected-nodes.ts";

const METHOD = "/a/b";
const MEMBERSHIP = {
  state: "REJECTED",
  sinceMs: 0,
  reason: "R",
  message: "bad disk",
  actor: "token:t",
} as const;

const keys = generateKeyPair();
let clock: ManualClock;
let nodes: RejectedNodes;
beforeEach(() => {
  clock = new ManualClock();
  nodes = new RejectedNodes({ clock, random: () => 0, record: { clusterId: () => "c" } });
});

function helloOf(nodeId: string, by = keys): Candidate {
  const nonce = new Uint8Array([1]);
  const text = proofText({ method: METHOD, clusterId: "c", nodeId, nonce });
  const hello = create(HelloSchema, { nodeId, signature: signProof(by.privateKey, text) });
  const key = { publicKey: by.publicKey, fingerprint: keyFingerprint(by.publicKey) };
  // Only the method name of the stream is used.
  const stream = { proofMethod: METHOD } as Candidate["stream"];
  return { stream, hello, nonce, clockSkewMs: null, key, events: [] };
}

const asked = (nodeId: string, by = keys) => nodes.refusalOf(helloOf(nodeId, by), () => {});
const eventOf = (subject: string) => [{ subject }] as unknown as EventRow[];

describe("RejectedNodes", () => {
  it("should repeat the refusal to a node that retries", () => {
    expect(asked("n1")).toBeNull();
    const first = nodes.refuse(helloOf("n1"), MEMBERSHIP);
    const again = asked("n1");
    expect(again).toEqual(first);
    expect(asked("n2")).toBeNull();
  });

  it("should reveal nothing to a caller that is not the node", () => {
    nodes.refuse(helloOf("n1"), MEMBERSHIP);
    expect(asked("n1", generateKeyPair())).toBeNull();
  });

  it("should verify no signature from a source with too many failures", () => {
    nodes.refuse(helloOf("n1"), MEMBERSHIP);
    const check = () => {
      throw new Error("too many");
    };
    expect(() => nodes.refusalOf(helloOf("n1"), check)).toThrow("too many");
    expect(nodes.refusalOf(helloOf("n2"), check)).toBeNull();
  });

  it("should read the store again after five minutes", async () => {
    nodes.refuse(helloOf("n1"), MEMBERSHIP);
    await clock.pass(299_999);
    expect(asked("n1")).not.toBeNull();
    await clock.pass(1);
    expect(asked("n1")).toBeNull();
    expect(nodes.size).toBe(0);
  });

  it("should forget a node as soon as there is any event about it", () => {
    nodes.refuse(helloOf("n1"), MEMBERSHIP);
    nodes.refuse(helloOf("n2"), MEMBERSHIP);
    nodes.observe(eventOf("n1"));
    expect(asked("n1")).toBeNull();
    expect(asked("n2")).not.toBeNull();
  });

  it("should not remember a node with an event while the store was read", () => {
    nodes.refuse({ ...helloOf("n1"), events: eventOf("n1") }, MEMBERSHIP);
    expect(nodes.size).toBe(0);
  });

  it("should remember a limited number of nodes, the latest ones", () => {
    const candidate = helloOf("n0");
    const named = (nodeId: string) => ({ ...candidate, hello: { ...candidate.hello, nodeId } });
    for (let index = 0; index < 20_000; index += 1) nodes.refuse(named(`n${index}`), MEMBERSHIP);
    nodes.refuse(named("n0"), MEMBERSHIP);
    nodes.refuse(named("more"), MEMBERSHIP);
    expect(nodes.size).toBe(20_000);
    expect(asked("n0")).not.toBeNull();
    nodes.observe(eventOf("n1"));
    expect(nodes.size).toBe(20_000);
  });
});
