import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HelloSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import { toText, wishedHeartbeatMs } from "./hello-fields.ts";

describe("wishedHeartbeatMs()", () => {
  it.each([
    [undefined, null],
    [{ seconds: 15n }, 15_000],
    [{ seconds: 0n, nanos: 250_000_000 }, 250],
    [{ seconds: 0n }, null],
    [{ seconds: -3n }, null],
    [{ seconds: 2n ** 62n }, null],
  ])("should read %j as %j", (wishedHeartbeatInterval, expected) => {
    const hello = wishedHeartbeatInterval === undefined ? {} : { wishedHeartbeatInterval };
    expect(wishedHeartbeatMs(create(HelloSchema, hello))).toBe(expected);
  });
});

describe("toText()", () => {
  it("should replace the one character that Postgres refuses", () => {
    expect(toText("a\0b\0")).toBe("a\uFFFDb\uFFFD");
    expect(toText("plain é")).toBe("plain é");
  });
});
