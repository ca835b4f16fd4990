import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import type { EventRow } from "@rollcall/store";
import { OWN_MESSAGES, SharedMessages } from "./event-messages.ts";
import { MESSAGE_BYTES } from "./sizes.ts";

const LOG = "5b6a1c3e-8f4d-4c2b-9a7e-1d2c3b4a5f60";

function event(revision: bigint, message = ""): EventRow {
  const changes = { before: null, after: { membership: "APPROVED" } };
  const facts = { type: "node.approved", subject: "n1", actor: "system", reason: "", message, ...changes } as const;
  return { ...facts, revision, id: `${revision}`, atMs: 1_000 };
}

const sent = (message: ReturnType<SharedMessages["bookmark"]>) =>
  fromBinary(WatchEventsResponseSchema, toBinary(WatchEventsResponseSchema, message));

describe("SharedMessages", () => {
  it("should send messages made for a single watcher", () => {
    const piece = { items: [event(5n), event(6n, "why")], through: 9n };
    const shared = new SharedMessages();
    expect(shared.of(piece, LOG).map(sent)).toEqual(OWN_MESSAGES.of(piece, LOG));
    expect(sent(shared.bookmark(7n, LOG))).toEqual(OWN_MESSAGES.bookmark(7n, LOG));
  });

  it("should encode the messages of a piece once, and again for another one", () => {
    const shared = new SharedMessages();
    const piece = { items: [event(5n)], through: 5n };
    const [first] = shared.of(piece, LOG);
    expect(shared.of(piece, LOG)[0]).toBe(first);
    expect(shared.of({ items: [event(6n)], through: 6n }, LOG)[0]).not.toBe(first);
    expect(shared.bookmark(7n, LOG)).toBe(shared.bookmark(7n, LOG));
    expect(sent(shared.bookmark(8n, LOG)).revision).toBe(8n);
    expect(shared.bookmark(8n, LOG.replace("5", "6"))).not.toBe(shared.bookmark(8n, LOG));
  });
});

describe("OWN_MESSAGES", () => {
  it("should split what is too large, each part with the position of its end", () => {
    const long = "x".repeat(MESSAGE_BYTES / 4);
    const messages = OWN_MESSAGES.of({ items: [event(1n, long), event(2n, long), event(3n)], through: 8n }, LOG);
    expect(messages.map(({ events, revision }) => [events.length, revision])).toEqual([
      [1, 1n],
      [2, 8n],
    ]);
  });
});
