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
  nuisance: () => {},
};

/** A connection that is served, whose handle tells whether it is read. */
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
  it("should read the connections of an address in turns once they have brought much in one turn", () => {
    const here = [connect("here"), connect("here")];
    const there = connect("there");
    const keeper = new AddressKeeper({
      accounts: null,
      nowMs: () => 1,
      strangersOf: (address) => (address === "here" ? here : [there]).map(({ connection }) => connection),
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
