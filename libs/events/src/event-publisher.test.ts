import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { createMetrics, renderMetrics, silentLogger } from "@rollcall/process";
import { toCloudEvent } from "./cloud-event.ts";
import type { NatsLink } from "./connect-nats.ts";
import { EventPublisher, type EventPublisherOptions } from "./event-publisher.ts";
import { describeWithNats, startTestNats, type TestNats } from "./testing/nats-server.ts";
import { LOG_ID, makeEvents } from "./testing/outward-events.ts";
import { distinctRevisions, readStream } from "./testing/read-stream.ts";
import { recordingLog, STREAM, testLink } from "./testing/test-link.ts";

describeWithNats("EventPublisher", () => {
  let nats: TestNats;
  let link: NatsLink;

  beforeEach(async () => {
    nats = await startTestNats();
    link = testLink(nats.settings, silentLogger);
  });

  afterEach(async () => {
    await link.close();
    await nats.close();
  });

  const publisherWith = (changes: Partial<EventPublisherOptions> = {}) =>
    new EventPublisher({ link, stream: STREAM, logId: LOG_ID, log: silentLogger, ...changes });
  const managerNow = async (): Promise<JetStreamManager> => await jetstreamManager(await link.connected());
  const storedRevisions = async () =>
    (await readStream(await managerNow(), STREAM.name)).map(({ event }) => BigInt(event.revision));
  const revisions = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, index) => BigInt(first + index));

  it("should publish events as CloudEvents, in order, each once", async () => {
    const metrics = createMetrics({ defaults: false });
    const session = await publisherWith({ metrics, maxInFlight: 7 }).begin(0n);
    const events = makeEvents(100);
    expect(await session.publish(events)).toEqual({ through: 100n, failure: null });
    const messages = await readStream(await managerNow(), STREAM.name);
    expect(messages.map(({ event }) => event)).toEqual(events.map((event) => toCloudEvent(event)));
    expect(messages[0]).toMatchObject({
      subject: "rollcall.events.node.health.changed.node-1",
      messageId: "event-1",
      contentType: "application/cloudevents+json",
    });
    expect(await renderMetrics(metrics)).toContain('rollcall_events_published_total{outcome="stored"} 100');
  });

  it("should return nothing for an empty batch", async () => {
    const session = await publisherWith().begin(0n);
    expect(await session.publish([])).toEqual({ through: null, failure: null });
  });

  it("should store nothing twice when a caller publishes events again", async () => {
    const metrics = createMetrics({ defaults: false });
    const publisher = publisherWith({ metrics });
    await (await publisher.begin(0n)).publish(makeEvents(50));
    const session = await publisher.begin(30n);
    expect(session.after).toBe(30n);
    expect(await session.publish(makeEvents(40, 31n))).toEqual({ through: 70n, failure: null });
    expect(await storedRevisions()).toEqual(revisions(1, 70));
    expect(await renderMetrics(metrics)).toContain('rollcall_events_published_total{outcome="duplicate"} 20');
  });

  it("should keep the order while another publisher is ahead", async () => {
    const former = await publisherWith().begin(0n);
    const latter = await publisherWith().begin(0n);
    const events = makeEvents(250);
    expect((await former.publish(events.slice(0, 100))).through).toBe(100n);
    // Publish again. The stream already has the first 100 events, but not the later ones, which the former
    // publisher never published.
    expect((await latter.publish(events.slice(0, 100))).through).toBe(100n);
    expect(await latter.publish(events.slice(100))).toEqual({ through: 250n, failure: null });
    expect((await former.publish(events.slice(100, 150))).through).toBe(150n);
    expect(await storedRevisions()).toEqual(revisions(1, 250));
  });

  it("should keep the order when another writer came in between", async () => {
    const session = await publisherWith().begin(0n);
    const client = jetstream(await link.connected());
    await client.publish("rollcall.events.intruder", "1");
    const { through, failure } = await session.publish(makeEvents(40));
    expect({ through, failure }).toEqual({ through: 40n, failure: null });
    const ours = (await readStream(await managerNow(), STREAM.name)).slice(1);
    expect(distinctRevisions(ours)).toEqual(revisions(1, 40));
  });

  it("should stop sending when the signal aborts, and return what is acknowledged", async () => {
    const session = await publisherWith({ maxInFlight: 4 }).begin(0n);
    const ending = new AbortController();
    const publishing = session.publish(makeEvents(10_000), ending.signal);
    ending.abort();
    const { through, failure } = await publishing;
    expect(failure).toBeNull();
    expect(await storedRevisions()).toEqual(revisions(1, Number(through)));
    expect(through).toBeLessThan(10_000n);
  });

  it("should publish an event above the size limit without its large parts", async () => {
    const session = await publisherWith().begin(0n);
    const [small, large] = makeEvents(2);
    if (small === undefined || large === undefined) throw new Error("no events");
    const after = { text: "x".repeat(2_000_000) };
    expect((await session.publish([small, { ...large, after }])).through).toBe(2n);
    const [, stored] = await readStream(await managerNow(), STREAM.name);
    expect(stored?.event.data.omitted).toEqual(["before", "after"]);
  });

  describe("failures", () => {
    it("should return what is acknowledged when the stream is full, and end the session", async () => {
      await (await managerNow()).streams.add({
        name: STREAM.name,
        subjects: ["rollcall.events.>"],
        max_msgs: 25,
        discard: "new",
      });
      const metrics = createMetrics({ defaults: false });
      const session = await publisherWith({ metrics }).begin(0n);
      const { through, failure } = await session.publish(makeEvents(40));
      expect([through, failure?.message]).toEqual([25n, "maximum messages exceeded"]);
      expect(session.ended.aborted).toBe(true);
      expect((await session.publish(makeEvents(1, 26n))).failure?.message).toBe("the publishing session has ended");
      expect(await renderMetrics(metrics)).toContain("rollcall_events_publish_errors_total 2");
    });

    it("should keep the order when an event in the middle is refused", async () => {
      const session = await publisherWith().begin(0n);
      await (await managerNow()).streams.update(STREAM.name, { max_msg_size: 10_000 });
      const events = makeEvents(60).map((event) =>
        event.revision === 31n ? { ...event, id: "x".repeat(20_000) } : event,
      );
      const { through, failure } = await session.publish(events);
      expect([through, failure?.message]).toEqual([30n, "message size exceeds maximum allowed"]);
      expect(await storedRevisions()).toEqual(revisions(1, 30));
    });

    it("should fail immediately when the connection is lost, not after the acknowledgement timeout", async () => {
      const session = await publisherWith({ ackTimeoutMs: 600_000 }).begin(0n);
      await nats.pause();
      const publishing = session.publish(makeEvents(100));
      await nats.kill();
      const { through, failure } = await publishing;
      expect(through).toBeNull();
      expect(failure).not.toBeNull();
      expect(session.ended.aborted).toBe(true);
    });

    it("should not count missing events while another writer writes to the stream", async () => {
      const session = await publisherWith().begin(0n);
      const client = jetstream(await link.connected());
      const ending = new AbortController();
      const intrude = async () => {
        for (let count = 0; !ending.signal.aborted; count += 1) {
          await client.publish("rollcall.events.intruder", `${count}`);
        }
      };
      const intruding = intrude();
      const { through } = await session.publish(makeEvents(2_000));
      ending.abort();
      await intruding;
      const messages = await readStream(await managerNow(), STREAM.name);
      const ours = messages.filter(({ messageId }) => messageId !== "");
      const stored = distinctRevisions(ours);
      expect(stored).toEqual(revisions(1, stored.length));
      expect(stored.length).toBeGreaterThanOrEqual(Number(through ?? 0n));
    });
  });

  describe("losses", () => {
    it("should restart from the beginning of the log when the server lost its data", async () => {
      const { log, text } = recordingLog();
      const metrics = createMetrics({ defaults: false });
      const publisher = publisherWith({ log, metrics });
      const session = await publisher.begin(0n);
      await session.publish(makeEvents(20));
      const ended = new Promise((resolve) => session.ended.addEventListener("abort", resolve));
      await nats.kill();
      await ended;
      await nats.removeData();
      await nats.start();
      const next = await publisher.begin(20n);
      expect(next.after).toBe(0n);
      expect((await next.publish(makeEvents(20))).through).toBe(20n);
      expect(await storedRevisions()).toEqual(revisions(1, 20));
      expect(text()).toContain("nats has lost events, publishing them again");
      expect(await renderMetrics(metrics)).toContain("rollcall_events_rewinds_total 1");
    });

    it("should detect the loss again until it is repaired", async () => {
      const publisher = publisherWith();
      await (await publisher.begin(0n)).publish(makeEvents(20));
      await (await managerNow()).streams.delete(STREAM.name);
      expect((await publisher.begin(20n)).after).toBe(0n);
      expect((await publisher.begin(20n)).after).toBe(0n);
      await (await publisher.begin(20n)).publish(makeEvents(5));
      expect((await publisher.begin(5n)).after).toBe(5n);
      // Start a publisher in another process, which knows only its cursor and the newest event.
      expect((await publisherWith().begin(20n)).after).toBe(5n);
    });

    it("should resume at the cursor after a restart without loss", async () => {
      const publisher = publisherWith();
      await (await publisher.begin(0n)).publish(makeEvents(20));
      await nats.stop();
      await nats.start();
      expect((await publisher.begin(20n)).after).toBe(20n);
      expect((await publisherWith().begin(20n)).after).toBe(20n);
    });

    it("should fail when the stream is deleted, and publish all again to the new one", async () => {
      const publisher = publisherWith();
      const session = await publisher.begin(0n);
      await session.publish(makeEvents(20));
      await (await managerNow()).streams.delete(STREAM.name);
      const { through, failure } = await session.publish(makeEvents(20, 21n));
      expect(through).toBeNull();
      expect(failure).not.toBeNull();
      const next = await publisher.begin(20n);
      expect(next.after).toBe(0n);
      expect((await next.publish(makeEvents(40))).through).toBe(40n);
      expect(await storedRevisions()).toEqual(revisions(1, 40));
    });

    it.each(["rollcall.events.>", "rollcall.>"])(
      "should notice that the stream of %s was replaced under a connection that stayed",
      async (subject) => {
        const manager = await managerNow();
        const config = { name: STREAM.name, subjects: [subject] };
        await manager.streams.add(config);
        const publisher = publisherWith();
        const session = await publisher.begin(0n);
        await session.publish(makeEvents(20));
        await manager.streams.delete(STREAM.name);
        await manager.streams.add(config);
        const { failure } = await session.publish(makeEvents(10, 21n));
        expect(failure).not.toBeNull();
        expect((await publisher.begin(20n)).after).toBe(0n);
      },
    );

    it("should detect in a check that the stream is gone while there are no events", async () => {
      const session = await publisherWith().begin(0n);
      await session.publish(makeEvents(20));
      await session.check();
      expect(session.ended.aborted).toBe(false);
      await (await managerNow()).streams.delete(STREAM.name);
      await session.check();
      expect(session.ended.aborted).toBe(true);
    });

    it("should publish again from the caller's revision", async () => {
      const publisher = publisherWith();
      await (await publisher.begin(0n)).publish(makeEvents(20));
      await (await managerNow()).streams.purge(STREAM.name);
      // Publish purged events again only if the caller requests that, because they do not count as lost.
      expect((await publisher.begin(20n)).after).toBe(20n);
      expect((await publisher.begin(10n)).after).toBe(10n);
    });
  });

  it("should keep all events in a stream that others write to as well", async () => {
    const manager = await managerNow();
    await manager.streams.add({ name: STREAM.name, subjects: ["rollcall.>"] });
    const session = await publisherWith().begin(0n);
    const client = jetstream(await link.connected());
    const publishing = session.publish(makeEvents(500));
    for (let count = 0; count < 50; count += 1) await client.publish("rollcall.other", `${count}`);
    expect(await publishing).toEqual({ through: 500n, failure: null });
    const messages = await readStream(manager, STREAM.name);
    expect(messages).toHaveLength(550);
    const ours = messages.filter(({ subject }) => subject.startsWith("rollcall.events."));
    expect(distinctRevisions(ours)).toEqual(revisions(1, 500));
  });
});
