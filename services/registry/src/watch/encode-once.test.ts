import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { WatchEventsResponseSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { EncodeOnce } from "./encode-once.ts";

const sent = (message: ReturnType<EncodeOnce["message"]>) =>
  fromBinary(WatchEventsResponseSchema, toBinary(WatchEventsResponseSchema, message));

describe("EncodeOnce", () => {
  it.each([
    {
      events: [{ id: "a", after: { membership: "APPROVED" } }, { id: "b" }],
      resumeToken: "t",
      revision: 7n,
    },
    { resumeToken: "t", revision: 7n },
    { revision: 7n },
    {},
  ])("should send what was made, example %#", (init) => {
    expect(sent(new EncodeOnce().message("key", () => init))).toMatchObject(init);
  });

  it("should encode the message of a key once, and that of another key again", () => {
    const once = new EncodeOnce();
    const made: string[] = [];
    for (const key of ["a", "a", "b", "a"]) {
      const message = once.message(key, () => {
        made.push(key);
        return { resumeToken: key };
      });
      expect(sent(message).resumeToken).toBe(key);
    }
    expect(made).toEqual(["a", "b", "a"]);
  });
});
