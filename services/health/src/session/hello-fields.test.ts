import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toText, wishesIn } from "./hello-fields.ts";

describe("wishesIn()", () => {
  it.each([
    [undefined, null],
    [{ seconds: 15n }, 15_000],
    [{ seconds: 0n, nanos: 250_000_000 }, 250],
    [{ seconds: 0n }, null],
    [{ seconds: -3n }, null],
    [{ seconds: 2n ** 62n }, null],
    [{ seconds: 2n ** 40n }, 86_400_000],
  ])("should read %j as %j", (interval, expected) => {
    const wished = (name: string) => (interval === undefined ? {} : { [name]: interval });
    const heartbeat = create(HelloSchema, wished("wishedHeartbeatInterval"));
    expect(wishesIn(heartbeat)).toEqual({ heartbeatMs: expected, infoMs: null });
    const info = create(HelloSchema, wished("wishedInfoInterval"));
    expect(wishesIn(info)).toEqual({ heartbeatMs: null, infoMs: expected });
  });
});

describe("toText()", () => {
  it("should replace the one character that Postgres refuses", () => {
    expect(toText("a\0b\0")).toBe("a\uFFFDb\uFFFD");
    expect(toText("plain é")).toBe("plain é");
  });
});
