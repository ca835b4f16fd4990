import { create } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import type { EventRow } from "@rollcall/store";
import { ManualClock } from "@rollcall/testkit/time";
import type { Candidate } from "./hello-arrival.ts";
import { RejectedNodes } from "./rejected-nodes.ts";

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
  nodes = new RejectedNodes({ clock, random: () => 0 });
});

function helloOf(nodeId: string): Candidate {
  const key = { publicKey: keys.publicKey, fingerprint: keyFingerprint(keys.publicKey) };
  // The stream of a Hello is not used.
  const stream = {} as Candidate["stream"];
  return {
    stream,
    hello: create(HelloSchema, { nodeId }),
    nonce: new Uint8Array(),
    clockSkewMs: null,
    key,
    events: [],
  };
}

const asked = (nodeId: string) => nodes.find(nodeId)?.farewell() ?? null;
const eventOf = (subject: string) => [{ subject }] as unknown as EventRow[];

describe("RejectedNodes", () => {
  it("should repeat the refusal to a node that retries", () => {
    expect(asked("n1")).toBeNull();
    const first = nodes.refuse(helloOf("n1"), MEMBERSHIP);
    const again = asked("n1");
    expect(again).toEqual(first);
    expect(nodes.find("n1")?.publicKey).toEqual(keys.publicKey);
    expect(asked("n2")).toBeNull();
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
