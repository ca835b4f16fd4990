import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { countEvents } from "./watch-frames.ts";

describe("countEvents()", () => {
  it.each([0, 1, 300])("should count %i events", (count) => {
    const events = Array.from({ length: count }, (_, index) => ({
      id: "x".repeat(index),
      revision: BigInt(index),
    }));
    const message = { events, resumeToken: "token", revision: 2n ** 60n };
    const bytes = toBinary(WatchEventsResponseSchema, create(WatchEventsResponseSchema, message));
    expect(countEvents(bytes)).toBe(count);
  });
});
