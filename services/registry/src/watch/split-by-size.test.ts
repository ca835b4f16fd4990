import { describe, expect, it } from "@jest/globals";
import type { StoredEvent } from "@rollcall/store";
import { splitBySize } from "./split-by-size.ts";

function eventOf(revision: number, changes: Partial<StoredEvent> = {}): StoredEvent {
  return {
    revision: BigInt(revision),
    id: `id-${revision}`,
    atMs: 0,
    type: "node.registered",
    subject: "n",
    actor: "system",
    reason: "TESTED",
    message: "",
    before: null,
    after: null,
    ...changes,
  };
}

describe("splitBySize()", () => {
  it("should make no message of no events", () => {
    expect([...splitBySize([])]).toEqual([]);
  });

  it("should keep together what fits", () => {
    const events = [eventOf(1), eventOf(2)];
    expect([...splitBySize(events)]).toEqual([{ events, isLast: true }]);
  });

  it("should split large ones in order, none lost, none empty", () => {
    const labels = Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`key-${at}`, "v"]));
    const events = Array.from({ length: 50 }, (_, index) =>
      eventOf(index, index % 2 === 0 ? { type: "node.labels.changed", after: { labels } } : {}),
    );
    const parts = [...splitBySize(events, 3_000)];
    expect(parts.flatMap((part) => part.events)).toEqual(events);
    expect(parts.every((part) => part.events.length > 0)).toBe(true);
    expect(parts.map(({ isLast }) => isLast).indexOf(true)).toBe(parts.length - 1);
    expect(parts.length).toBeGreaterThan(10);
  });

  it("should send alone what does not fit with anything", () => {
    const events = [1, 2].map((revision) => eventOf(revision, { message: "x".repeat(1_000) }));
    expect([...splitBySize(events, 100)].map((part) => part.events.length)).toEqual([1, 1]);
  });
});
