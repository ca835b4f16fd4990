import { describe, expect, it } from "@jest/globals";
import { faultsAtLimit, type Use } from "@rollcall/testkit/limits";
import { type ConnectionLimits, ConnectionTable, type Standing, TableEntry } from "./connection-table.ts";

class Entry extends TableEntry {
  readonly name: string;
  constructor(name: string, address = "a") {
    super(address);
    this.name = name;
  }
}

const LIMITS: ConnectionLimits = {
  maxConnections: 3,
  maxAnonymousOfAddress: 2,
  freshMs: 10,
  idleMs: 100,
  spareBusyMs: 1_000,
};
const PORT_ONLY = { ...LIMITS, maxAnonymousOfAddress: Number.POSITIVE_INFINITY };

/**
 * Admit `<name>@<address>`. Returns the connection that was closed to make room, or the limit that prevented
 * the admission; otherwise null.
 */
function admit(table: ConnectionTable<Entry>, entry: Entry, nowMs: number): string | null {
  const admission = table.admit(entry, nowMs);
  return admission.ok ? (admission.shed?.name ?? null) : `refused by ${admission.crowd}`;
}

function names(entries: readonly Entry[]): readonly string[] {
  return entries.map(({ name }) => name);
}

describe("ConnectionTable", () => {
  it.each([
    [
      "anonymous connections of an address",
      LIMITS.maxAnonymousOfAddress,
      { ...LIMITS, maxConnections: 100 },
      "address",
    ],
    ["connections of a port", LIMITS.maxConnections, PORT_ONLY, "port"],
  ])("should limit %s, and count none after they end in any way", async (_, limit, limits, crowd) => {
    const table = new ConnectionTable<Entry>({ ...limits, spareBusyMs: Number.POSITIVE_INFINITY });
    const begin = (): Use => {
      const entry = new Entry("one");
      const refused = admit(table, entry, 0);
      if (refused !== null) throw new Error(refused);
      table.move(entry, "busy", 0);
      const afterOthers = (...standings: readonly Standing[]) => {
        return () => {
          for (const standing of standings) table.move(entry, standing, 1);
          table.remove(entry);
          // Whatever is still reported about a closed connection does not count.
          for (const standing of ["idle", "busy"] as const) table.move(entry, standing, 2);
          table.remove(entry);
        };
      };
      return {
        endings: {
          "its end with calls": afterOthers(),
          "its end without calls": afterOthers("idle"),
          "its end after its caller was known": afterOthers("known"),
          "its end after its caller was known for a while": afterOthers("known", "idle", "busy", "known", "idle"),
        },
      };
    };
    const held = () => table.size + table.anonymousClients + [...table.anonymousOf("a")].length;
    expect(await faultsAtLimit({ limit, reason: `refused by ${crowd}`, begin, held })).toEqual([]);
  });

  it("should shed the longest idle anonymous connection when the port is full", () => {
    const table = new ConnectionTable<Entry>(PORT_ONLY);
    const [a, b, c] = ["a", "b", "c"].map((name) => new Entry(name)) as [Entry, Entry, Entry];
    for (const [index, entry] of [a, b, c].entries()) expect(admit(table, entry, index)).toBeNull();
    table.move(a, "busy", 3);
    table.move(a, "idle", 4);
    expect(admit(table, new Entry("d"), 5)).toBe("b");
    expect(admit(table, new Entry("e"), 6)).toBe("c");
    expect(admit(table, new Entry("f"), 7)).toBe("a");
    expect(table.size).toBe(3);
  });

  it("should refuse a newcomer if all others have calls or are known", () => {
    const table = new ConnectionTable<Entry>(PORT_ONLY);
    const entries = ["a", "b", "c"].map((name) => new Entry(name));
    for (const entry of entries) {
      admit(table, entry, 0);
      table.move(entry, "busy", 0);
    }
    expect(admit(table, new Entry("d"), 999)).toBe("refused by port");
    expect(admit(table, new Entry("d"), 1_000)).toBe("a");
    for (const entry of entries) table.move(entry, "known", 1_000);
    for (const d of table.spareable(10)) table.move(d, "known", 1_000);
    expect(admit(table, new Entry("e"), 99_999)).toBe("refused by port");
    expect(table.anonymousClients).toBe(0);
  });

  it("should only limit the anonymous connections of an address, not its known ones or those of others", () => {
    const table = new ConnectionTable<Entry>({ ...LIMITS, maxConnections: 100 });
    for (let index = 0; index < 20; index += 1) {
      const agent = new Entry(`agent-${index}`);
      expect(admit(table, agent, index)).toBeNull();
      table.move(agent, "busy", index);
      table.move(agent, "known", index);
    }
    const [one, two] = [new Entry("one"), new Entry("two")];
    expect(admit(table, one, 30)).toBeNull();
    expect(admit(table, two, 31)).toBeNull();
    expect(admit(table, new Entry("other", "b"), 32)).toBeNull();
    expect(admit(table, new Entry("three"), 33)).toBe("one");
    for (const entry of table.spareable(10)) table.move(entry, "busy", 34);
    expect(admit(table, new Entry("four"), 35)).toBe("refused by address");
    expect(admit(table, new Entry("another", "b"), 36)).toBeNull();
  });

  it("should treat a known connection as anonymous again when it is idle", () => {
    const table = new ConnectionTable<Entry>(LIMITS);
    const entry = new Entry("a");
    admit(table, entry, 0);
    table.move(entry, "known", 1);
    expect(table.overdue(1_000_000, 10)).toEqual([]);
    table.move(entry, "idle", 1_000_000);
    expect(table.overdue(1_000_099, 10)).toEqual([]);
    expect(names(table.overdue(1_000_100, 10))).toEqual(["a"]);
  });

  it("should return timed-out connections, exactly from the limit on, and at most the requested number", () => {
    const table = new ConnectionTable<Entry>({ ...PORT_ONLY, maxConnections: 100 });
    const entries = Array.from({ length: 6 }, (_, index) => new Entry(`e${index}`));
    for (const entry of entries) admit(table, entry, 0);
    for (const entry of entries.slice(3)) table.move(entry, "idle", 0);
    expect(table.overdue(9, 10)).toEqual([]);
    expect(names(table.overdue(10, 10))).toEqual(["e0", "e1", "e2"]);
    expect(names(table.overdue(100, 2))).toEqual(["e0", "e1", "e3", "e4"]);
  });

  it("should forget a connection once, and ignore later changes", () => {
    const table = new ConnectionTable<Entry>(LIMITS);
    const entry = new Entry("a");
    admit(table, entry, 0);
    table.remove(entry);
    table.remove(entry);
    table.move(entry, "idle", 1);
    expect([table.size, table.anonymousClients, table.overdue(1_000, 10)]).toEqual([0, 0, []]);
  });
});
