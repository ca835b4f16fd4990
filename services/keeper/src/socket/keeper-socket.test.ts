import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { connect } from "node:net";
import { dirname } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ObservedState } from "@rollcall/api/rollcall/work/v1/work_pb";
import { silentLogger } from "@rollcall/process";
import { until } from "@rollcall/testkit/time";
import { frameMessage, MOST_FRAME_BYTES } from "@rollcall/wire";
import type { Keeper } from "../keeper.ts";
import { keeperSocket } from "../keeper-places.ts";
import { identityOf, KeeperFixture } from "../testing/keeper-fixture.ts";
import { KeeperClient } from "../testing/keeper-process.ts";
import { KeeperSocket } from "./keeper-socket.ts";

describe("KeeperSocket", () => {
  let fixture: KeeperFixture;
  let socket: KeeperSocket;
  let path: string;
  let retirements: number;

  beforeEach(async () => {
    fixture = await KeeperFixture.create();
    const keeper = await fixture.open();
    path = keeperSocket(fixture.stateDirectory);
    retirements = 0;
    const onRetire = (): void => {
      retirements += 1;
    };
    socket = await KeeperSocket.open({ path, keeper, facts: () => ({ version: "1" }), onRetire, log: silentLogger });
  });

  afterEach(async () => {
    await socket.close();
    await fixture.dispose();
  });

  it("should not be accessible to other users", async () => {
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("should send all executions after the greeting, and then changes", async () => {
    const id = "e1";
    await fixture.keeper.refuse(identityOf({}, { id }), "log-1", { cause: "START_FAILED", message: "no" });
    const client = await KeeperClient.connect(path);
    const reply = await client.request({ case: "greet", value: {} });
    expect(reply.reply).toMatchObject({ case: "greeting", value: { version: "1" } });
    await until("the list", () => client.frames.some((frame) => frame.case === "listed"));
    expect(client.frames.map((frame) => frame.case)).toEqual(["reply", "changed", "listed"]);
    await client.request({ case: "forget", value: { ids: [id, "e2"] } });
    const changed = await until("its end", () => {
      return client.frames.findLast((frame) => frame.case === "changed" && frame.value.forgotten);
    });
    expect(changed.value).toMatchObject({ observation: { id, state: ObservedState.ENDED, message: "no" } });
    client.close();
  });

  it.each<[string, Parameters<KeeperClient["request"]>[0], string]>([
    [
      "an id that is a path",
      { case: "stop", value: { reference: { id: "../../etc" } } },
      "is not a valid execution id",
    ],
    [
      "a spec that does not match its digest",
      { case: "start", value: { reference: { id: "e1" } } },
      "does not match its digest",
    ],
    ["output of an unknown execution", { case: "readOutput", value: { id: "e1" } }, "no output of execution e1"],
  ])("should refuse %s", async (_, request, error) => {
    const client = await KeeperClient.connect(path);
    expect((await client.request(request)).error).toContain(error);
    expect(fixture.keeper.records()).toEqual([]);
    client.close();
  });

  it("should notify the keeper's process when it must retire", async () => {
    const client = await KeeperClient.connect(path);
    await client.request({ case: "retire", value: {} });
    await until("the word", () => retirements === 1);
    client.close();
  });

  it.each([
    ["a length over the limit", () => lengthOf(MOST_FRAME_BYTES + 1)],
    ["an invalid message", () => Buffer.from(frameMessage(Buffer.from([0xff, 0xff, 0xff])))],
    ["noise", () => Buffer.concat([lengthOf(100), randomBytes(100)])],
  ])("should end a connection that sends %s, and serve the others", async (_, bytes) => {
    const client = await KeeperClient.connect(path);
    const hostile = connect(path);
    hostile.on("error", () => {});
    await once(hostile, "connect");
    // A random message may by chance be valid and get a reply.
    hostile.write(Buffer.concat([bytes(), lengthOf(0xffff_ffff)]));
    hostile.resume();
    if (!hostile.closed) await once(hostile, "close");
    expect((await client.request({ case: "greet", value: {} })).error).toBe("");
    client.close();
  });

  it("should report changes to each agent once, and to none that has left", async () => {
    let listeners = 0;
    const keeper = {
      records: () => [],
      subscribe: () => {
        listeners += 1;
        return () => {
          listeners -= 1;
        };
      },
    };
    const other = await KeeperSocket.open({
      ...{ path: `${path}-2`, keeper: keeper as unknown as Keeper, facts: () => ({ version: "1" }) },
      ...{ onRetire: () => {}, log: silentLogger },
    });
    try {
      for (let agent = 0; agent < 10; agent += 1) {
        const client = await KeeperClient.connect(`${path}-2`);
        for (let greeting = 0; greeting < 2; greeting += 1) await client.request({ case: "greet", value: {} });
        expect(listeners).toBe(1);
        client.close();
        await until("the end of its connection", () => other.connections === 0 && listeners === 0, 10_000);
      }
    } finally {
      await other.close();
    }
  });

  it("should limit the number of connections", async () => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => KeeperClient.connect(path)));
    await until("all of them", () => socket.connections === 8);
    const more = connect(path);
    more.on("error", () => {});
    await once(more, "close");
    expect(socket.connections).toBe(8);
    for (const client of clients) client.close();
  });
});

function lengthOf(bytes: number): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt32BE(bytes);
  return header;
}
