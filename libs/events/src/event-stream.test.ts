import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { silentLogger } from "@rollcall/process";
import type { NatsLink } from "./connect-nats.ts";
import { ensureEventStream, type StreamSettings } from "./event-stream.ts";
import { describeWithNats, startTestNats, type TestNats } from "./testing/nats-server.ts";
import { STREAM, testLink } from "./testing/test-link.ts";

describeWithNats("ensureEventStream()", () => {
  let nats: TestNats;
  let link: NatsLink;
  let manager: JetStreamManager;

  beforeAll(async () => {
    nats = await startTestNats();
    link = testLink(nats.settings, silentLogger);
    manager = await jetstreamManager(await link.connected());
  });

  afterEach(async () => {
    for await (const name of manager.streams.names()) await manager.streams.delete(name);
  });

  afterAll(async () => {
    await link.close();
    await nats.close();
  });

  const ensure = (changes: Partial<StreamSettings> = {}) =>
    ensureEventStream(manager, { ...STREAM, ...changes }, silentLogger);
  const create = (config: Partial<StreamConfig>) =>
    manager.streams.add({ name: STREAM.name, subjects: ["rollcall.events.>"], ...config });

  it("should create the stream as configured", async () => {
    const stream = await ensure({ maxAgeMs: 60_000, maxBytes: 1_000_000, storage: "memory" });
    expect(stream).toMatchObject({ lastSequence: 0, isExclusive: true, keepsMessages: true });
    const { config } = await manager.streams.info(STREAM.name);
    expect(config).toMatchObject({
      subjects: ["rollcall.events.>"],
      retention: "limits",
      storage: "memory",
      num_replicas: 1,
      max_age: 60_000_000_000,
      max_bytes: 1_000_000,
      // Expect one minute instead of the requested two, because the window cannot exceed the maximum age.
      duplicate_window: 60_000_000_000,
    });
  });

  it("should not change an operator's stream", async () => {
    const config = { max_msgs: 10, max_age: 5_000_000_000, duplicate_window: 1_000_000_000 };
    await create(config);
    await ensure();
    expect((await manager.streams.info(STREAM.name)).config).toMatchObject(config);
  });

  it("should detect other writers on an operator's stream", async () => {
    await create({ subjects: ["audit.>", "rollcall.>"] });
    expect(await ensure()).toMatchObject({ isExclusive: false });
  });

  it("should detect that messages are removed once they are read", async () => {
    await create({ retention: "workqueue" });
    expect(await ensure()).toMatchObject({ keepsMessages: false });
  });

  describe("problems", () => {
    it("should refuse a stream that does not take all events, and say what to do", async () => {
      await create({ subjects: ["rollcall.events.node.>", "audit.>"] });
      await expect(ensure()).rejects.toThrow(
        "the NATS stream ROLLCALL_EVENTS takes rollcall.events.node.>, audit.> but not rollcall.events.>: add " +
          "it to the stream's subjects, or name another stream in Events.Nats.Stream",
      );
    });

    it("should refuse a stream that acknowledges nothing", async () => {
      await create({ no_ack: true });
      await expect(ensure()).rejects.toThrow("acknowledges nothing");
    });

    it("should report that another stream already takes the subjects", async () => {
      await create({ name: "AUDIT", subjects: ["rollcall.>"] });
      await expect(ensure()).rejects.toThrow(
        /cannot be created: subjects overlap .*; name that stream in Events\.Nats\.Stream/,
      );
    });

    it("should report that the server has no JetStream", async () => {
      const plain = await startTestNats({ jetstream: false });
      const plainLink = testLink(plain.settings, silentLogger);
      try {
        const without = await jetstreamManager(await plainLink.connected(), { checkAPI: false });
        await expect(ensureEventStream(without, STREAM, silentLogger)).rejects.toThrow(
          "JetStream is not enabled on the NATS server",
        );
      } finally {
        await plainLink.close();
        await plain.close();
      }
    });
  });
});
