import net from "node:net";
import { describe, expect, it } from "@jest/globals";
import { AddressKeeper } from "./address-keeper.ts";
import { Connection, type ConnectionOwner } from "./connection.ts";

const owner: ConnectionOwner = {
  gone: () => {},
  sessionBegan: () => {},
  settled: () => {},
  callBegan: () => {},
  callEnded: () => {},
  identified: () => {},
  nuisance: () => {},
};

/** Create a connection that is being served. `isRead` returns whether the server reads from it. */
function connect(address: string): { readonly connection: Connection; readonly isRead: () => boolean } {
  let isRead = true;
  const _handle = {
    reading: true,
    readStop: () => {
      isRead = false;
    },
    readStart: () => {
      isRead = true;
    },
  };
  const connection = new Connection(owner, Object.assign(new net.Socket(), { _handle }), address);
  connection.isWaiting = false;
  return { connection, isRead: () => isRead };
}

describe("AddressKeeper", () => {
  it("should make the connections of an address take turns after they brought much in one iteration", () => {
    const here = [connect("here"), connect("here")];
    const there = connect("there");
    const keeper = new AddressKeeper({
      accounts: null,
      nowMs: () => 1,
      anonymousOf: (address) => (address === "here" ? here : [there]).map(({ connection }) => connection),
    });
    const [first, second] = here;
    if (first === undefined || second === undefined) throw new Error("there are two");
    for (let pings = 0; pings < 400; pings += 1) keeper.brought(first.connection, 1);
    for (let calls = 0; calls < 9; calls += 1) keeper.callBegan(second.connection);
    expect(here.map(({ isRead }) => isRead())).toEqual([true, true]);
    keeper.callBegan(second.connection);
    expect(here.map(({ isRead }) => isRead())).toEqual([false, false]);
    expect(there.isRead()).toBe(true);
  });
});
