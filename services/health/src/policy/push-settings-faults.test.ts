import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createTestDatabase, storePort, type TestDatabase } from "@rollcall/testkit";
import { failOnceAtEachCall } from "@rollcall/testkit/faults";
import { BareStream, bareReplica, HELLO, opening } from "../testing/bare-replica.ts";
import { SettingsPusher } from "./push-settings.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A stream that counts the settings that it was sent. */
class ToldStream extends BareStream {
  told = 0;

  override sendSettings(): void {
    this.told += 1;
  }
}

describe("SettingsPusher", () => {
  it("should send settings although a read of the store fails", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const { replica, clock } = bareReplica();
      const pusher = new SettingsPusher({ store: storePort(ports, database.store.reserved), replica, clock });
      const stream = new ToldStream();
      pusher.add(replica.take(stream, opening(1), HELLO));
      await ports.attempt(() => pusher.flush(new AbortController().signal));
      expect(stream.told).toBe(1);
    });
    expect(calls).toEqual(["statements.run", "statements.run"]);
  });
});
