import { afterEach, describe, expect, it } from "@jest/globals";
import { generateKeyPair, keyFingerprint } from "@rollcall/identity";
import { settle } from "@rollcall/testkit/time";
import { toDuration } from "./stream/hello.ts";
import { type AgentHarness, createHarness } from "./testing/agent-harness.ts";
import { startKnown } from "./testing/running-agent.ts";

let harness: AgentHarness | undefined;

afterEach(async () => {
  await harness?.kill();
  harness = undefined;
});

function wantRotation({ plane }: AgentHarness): void {
  const rotateKeyWithin = toDuration(0);
  plane.latest.send({ case: "settings", value: { ...plane.settings, rotateKeyWithin } });
}

function keyOf({ keyFiles }: AgentHarness): string {
  return keyFingerprint(keyFiles.current.publicKey);
}

async function pass({ clock }: AgentHarness, ms: number): Promise<void> {
  clock.advance(ms);
  await settle();
}

/** Kill the agent, and start a new one on the same disk against the same control plane. */
async function restart(killed: AgentHarness): Promise<AgentHarness> {
  await killed.kill();
  const { plane, keyFiles, sentinel } = killed;
  const next = createHarness({ plane, keyFiles, ...(sentinel && { sentinel }) });
  next.start();
  await settle();
  return next;
}

describe("the rotation of an agent's key", () => {
  it("should switch to a new key, on a new stream, when the settings request it", async () => {
    harness = await startKnown();
    const { plane, keyFiles, logged } = harness;
    const before = plane.latest;
    wantRotation(harness);
    await settle();
    await pass(harness, 1_000);
    expect(plane.offers).toEqual([keyOf(harness)]);
    expect(keyFiles.next).toBeUndefined();
    expect(plane.latest).not.toBe(before);
    expect(before.isOpen).toBe(false);
    expect(harness.agent.status().phase).toBe("connected");
    expect(harness.sentinel?.keyFingerprint).toBe(keyOf(harness));
    const messages = logged.map(({ message }) => message);
    expect(messages).toEqual(expect.arrayContaining(["rotating the key", "key rotated"]));
    expect(messages).not.toContain("connection lost");
  });

  it("should start at a random moment of the time given by the settings", async () => {
    harness = await startKnown(() => {}, { random: () => 0.5 });
    const { plane } = harness;
    const rotateKeyWithin = toDuration(60_000);
    plane.latest.send({ case: "settings", value: { ...plane.settings, rotateKeyWithin } });
    await settle();
    await pass(harness, 29_000);
    expect(plane.offers).toEqual([]);
    await pass(harness, 1_000);
    expect(plane.offers).toHaveLength(1);
  });

  it("should start automatically once the key is old enough, and again after that", async () => {
    harness = await startKnown(() => {}, { keyRotationIntervalMs: 3_600_000 });
    await pass(harness, 3_599_000);
    expect(harness.plane.offers).toEqual([]);
    await pass(harness, 1_000);
    await pass(harness, 1_000);
    expect(harness.plane.offers).toEqual([keyOf(harness)]);
    await pass(harness, 3_600_000);
    await pass(harness, 1_000);
    expect(harness.plane.offers).toHaveLength(2);
    expect(harness.plane.offers[1]).toBe(keyOf(harness));
  });

  it("should repeat the offer of the same key until it is answered", async () => {
    harness = await startKnown();
    const { plane, keyFiles } = harness;
    plane.losesRotationAnswers = true;
    wantRotation(harness);
    await settle();
    await pass(harness, 1_000);
    await pass(harness, 1_000);
    expect(plane.offers.length).toBeGreaterThan(1);
    expect(new Set(plane.offers).size).toBe(1);
    expect(keyFiles.next).toBeDefined();
    plane.losesRotationAnswers = false;
    await pass(harness, 10_000);
    await pass(harness, 1_000);
    expect(keyOf(harness)).toBe(plane.offers[0]);
  });

  it("should continue after a crash before the answer", async () => {
    const first = await startKnown();
    const { plane, keyPair } = first;
    plane.losesRotationAnswers = true;
    wantRotation(first);
    await settle();
    expect(keyOf(first)).toBe(keyFingerprint(keyPair.publicKey));
    plane.losesRotationAnswers = false;
    harness = await restart(first);
    await pass(harness, 1_000);
    await pass(harness, 1_000);
    expect(new Set(plane.offers)).toEqual(new Set([keyOf(harness)]));
    expect(harness.agent.status().phase).toBe("connected");
  });

  it("should reconnect with the next key after a crash that followed its first use", async () => {
    const first = await startKnown();
    const { plane, keyFiles, keyPair } = first;
    wantRotation(first);
    await settle();
    await pass(first, 1_000);
    // Simulate a crash before the next key replaced the old one on disk.
    keyFiles.next = keyFiles.current;
    keyFiles.current = keyPair;
    harness = await restart(first);
    await settle();
    expect(harness.agent.status().phase).toBe("connected");
    expect(keyOf(harness)).toBe(plane.offers[0]);
    expect(plane.registrations).toEqual([]);
  });

  it("should open another stream if the next key was offered while one was being opened", async () => {
    const first = await startKnown();
    const { plane } = first;
    plane.losesRotationAnswers = true;
    wantRotation(first);
    await settle();
    plane.losesRotationAnswers = false;
    plane.ignoresHello = true;
    let answer = (): void => {};
    const held = new Promise<void>((resolve) => (answer = resolve));
    const rotateKey = plane.rotateKey.bind(plane);
    plane.rotateKey = async (...offer) => {
      await held;
      return rotateKey(...offer);
    };
    harness = await restart(first);
    const before = plane.latest;
    expect(before.received.map(({ case: kind }) => kind)).toEqual(["hello"]);
    answer();
    await settle();
    plane.ignoresHello = false;
    before.send({
      case: "welcome",
      value: { sessionEpoch: 90n, clusterId: plane.clusterId, settings: plane.settings },
    });
    await settle();
    await pass(harness, 1_000);
    expect(plane.latest).not.toBe(before);
    expect(keyOf(harness)).toBe(plane.offers[0]);
    expect(before.isOpen).toBe(false);
    expect(harness.agent.status().phase).toBe("connected");
  });

  it("should write the next key to disk before it is offered", async () => {
    harness = await startKnown();
    const { plane, keyFiles } = harness;
    keyFiles.writeNextKey = async () => {
      throw new Error("no space left on device");
    };
    wantRotation(harness);
    await settle();
    expect(plane.offers).toEqual([]);
    expect(harness.logged.map(({ message }) => message)).toContain("key cannot be rotated");
    expect(harness.agent.status().phase).toBe("connected");
  });

  it("should ignore a next key that is unknown to the server", async () => {
    const first = await startKnown();
    first.keyFiles.next = generateKeyPair();
    harness = await restart(first);
    await pass(harness, 1_000);
    expect(harness.agent.status().phase).toBe("connected");
    expect(harness.plane.offers).toEqual([keyOf(harness)]);
  });
});
