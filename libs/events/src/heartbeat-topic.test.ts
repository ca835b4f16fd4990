import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { createMetrics, renderMetrics, silentLogger } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import type { NatsLink } from "./connect-nats.ts";
import { HeartbeatTopic } from "./heartbeat-topic.ts";
import { describeWithNats, startTestNats, type TestNats } from "./testing/nats-server.ts";
import { testLink } from "./testing/test-link.ts";

describeWithNats("HeartbeatTopic", () => {
  let nats: TestNats;
  let link: NatsLink;

  beforeEach(async () => {
    nats = await startTestNats({ jetstream: false });
    link = testLink(nats.settings, silentLogger);
    await link.connected();
  });

  afterEach(async () => {
    nats.resume();
    await link.close();
    await nats.close();
  });

  /** Collect the messages of a subscription, which is active when this resolves. */
  const subscribe = async (): Promise<readonly string[]> => {
    const received: string[] = [];
    const connection = await link.connected();
    connection.subscribe("heartbeat", {
      callback: (_, message) => {
        received.push(message.string());
      },
    });
    await connection.flush();
    return received;
  };

  it("should publish each heartbeat as a plain message", async () => {
    const received = await subscribe();
    const topic = new HeartbeatTopic({ link, subject: "heartbeat" });
    expect(topic.publish({ nodeId: "web-1", sequence: 7 })).toBe(true);
    expect(topic.publish({ nodeId: "web-2", sequence: 1 })).toBe(true);
    await until("both arrive", () => received.length === 2);
    expect(received).toEqual(['{"NodeID":"web-1","Sequence":7}', '{"NodeID":"web-2","Sequence":1}']);
  });

  it("should drop and count above its limit while the server does not read, then resume", async () => {
    const metrics = createMetrics({ defaults: false });
    const topic = new HeartbeatTopic({ link, subject: "heartbeat", limit: 100, metrics });
    await nats.pause();
    const taken = Array.from({ length: 1_000 }, (_, sequence) => topic.publish({ nodeId: "web-1", sequence }));
    expect(taken.filter((it) => it)).toHaveLength(100);
    expect(await renderMetrics(metrics)).toContain('rollcall_heartbeat_topic_dropped_total{reason="slow"} 900');
    nats.resume();
    await until("it takes heartbeats again", () => topic.publish({ nodeId: "web-1", sequence: 0 }));
  });

  it("should never be full when the server keeps up", async () => {
    const received = await subscribe();
    const topic = new HeartbeatTopic({ link, subject: "heartbeat", limit: 10 });
    for (let sequence = 0; sequence < 500; sequence += 1) {
      await until("there is room", () => topic.publish({ nodeId: "web-1", sequence }));
    }
    await until("all arrive", () => received.length === 500);
  });

  it("should drop and count while NATS is unavailable, then resume", async () => {
    const metrics = createMetrics({ defaults: false });
    const topic = new HeartbeatTopic({ link, subject: "heartbeat", metrics });
    topic.publish({ nodeId: "web-1", sequence: 0 });
    await nats.kill();
    await until("the loss is noticed", () => link.connection === null);
    expect(topic.publish({ nodeId: "web-1", sequence: 1 })).toBe(false);
    expect(await renderMetrics(metrics)).toContain('rollcall_heartbeat_topic_dropped_total{reason="away"} 1');
    await nats.start();
    await link.connected();
    expect(topic.publish({ nodeId: "web-1", sequence: 2 })).toBe(true);
    expect(await renderMetrics(metrics)).toContain("rollcall_heartbeat_topic_sent_total 2");
  });
});
