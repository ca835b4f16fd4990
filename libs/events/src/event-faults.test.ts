import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { silentLogger } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import type { NatsLink } from "./connect-nats.ts";
import { EventPublisher } from "./event-publisher.ts";
import { LogFollower } from "./testing/log-follower.ts";
import { describeWithNats, startTestNats, type TestNats } from "./testing/nats-server.ts";
import { LOG_ID } from "./testing/outward-events.ts";
import { distinctRevisions, readEventRows } from "./testing/read-stream.ts";
import { STREAM, testLink } from "./testing/test-link.ts";

const CHUNK = 300;

describeWithNats("EventPublisher, whatever happens to NATS", () => {
  let nats: TestNats;
  let link: NatsLink;
  let follower: LogFollower;

  beforeEach(async () => {
    nats = await startTestNats();
    link = testLink(nats.settings, silentLogger);
    const options = { link, stream: STREAM, logId: LOG_ID, log: silentLogger };
    follower = new LogFollower(() => new EventPublisher({ ...options, ackTimeoutMs: 250 }));
  });

  afterEach(async () => {
    nats.resume();
    await follower.close();
    await link.close();
    await nats.close();
  });

  const manager = async () => await jetstreamManager(await link.connected());
  const failsOnce = async () => {
    const before = follower.failures;
    await until("publishing fails", () => follower.failures > before);
  };
  /** Publish events before, during and after a fault, which happens while some of them are in flight. */
  const during = async (fault: () => Promise<void>) => {
    const start = follower.cursor;
    follower.append(CHUNK);
    await until("publishing is under way", () => follower.cursor > start);
    const striking = fault();
    follower.append(CHUNK);
    await striking;
    follower.append(CHUNK);
  };
  const faults: Readonly<Record<string, () => Promise<void>>> = {
    killed: async () => {
      await nats.kill();
      await nats.start();
    },
    stopped: async () => {
      await nats.stop();
      await nats.start();
    },
    "held up": async () => {
      await nats.pause();
      follower.append(CHUNK);
      await failsOnce();
      nats.resume();
    },
    "robbed of its data": async () => {
      await nats.kill();
      await nats.removeData();
      await nats.start();
    },
    "robbed of the stream": async () => {
      await (await manager()).streams.delete(STREAM.name);
      follower.append(CHUNK);
      await failsOnce();
    },
    "held up while the publisher crashes": async () => {
      await nats.pause();
      follower.append(CHUNK);
      await failsOnce();
      follower.crash();
      nats.resume();
    },
    "robbed of its data while the publisher crashes": async () => {
      await nats.kill();
      follower.crash();
      await nats.removeData();
      await nats.start();
    },
  };

  const expectExactlyTheLog = async () => {
    await until("all is published", () => follower.cursor === follower.newest);
    const revisions = distinctRevisions(await readEventRows(nats));
    const all = Array.from({ length: Number(follower.newest) }, (_, index) => BigInt(index + 1));
    expect(revisions).toEqual(all);
  };

  it.each(Object.keys(faults))("should have exactly the log in the stream after it was %s", async (name) => {
    await during(async () => await faults[name]?.());
    await expectExactlyTheLog();
  });

  it("should have exactly the log in the stream after all these faults", async () => {
    for (const fault of Object.values(faults)) await during(fault);
    await expectExactlyTheLog();
  });
});
