import { describe, expect, it } from "@jest/globals";
import * as z from "zod/mini";
import {
  address,
  bool,
  bytes,
  decimal,
  describeValue,
  duration,
  host,
  int,
  list,
  oneOf,
  optional,
  serverAddress,
  stringMap,
  text,
  url,
  type Written,
  writeValue,
} from "./value-types.ts";

function read<T>(schema: z.ZodMiniType<T>, written: Written): T | string {
  const result = schema.safeParse(written);
  return result.success ? result.data : result.error.issues.map((it) => it.message).join("; ");
}

describe("value schemas", () => {
  const minute = duration({ minMs: 1_000, maxMs: 60_000 });
  it.each([
    ["duration", minute, "15s", 15_000],
    ["duration", minute, "15", 15_000],
    ["duration", minute, "500ms", "500ms is less than 1s"],
    ["duration", minute, "2m", "2m is more than 1m"],
    ["duration", minute, "-2m", '"-2m" is negative'],
    ["duration", minute, "soon", '"soon" is not a duration such as 15s, 1h30m or 250ms'],
    ["duration", minute, ["1s"], '["1s"] is not a duration such as 15s, 1h30m or 250ms'],
    ["bytes", bytes(), "2Gi", 2 * 1_024 ** 3],
    ["bytes", bytes(), "512m", '"512m" is ambiguous: m is a thousandth in Kubernetes; write M or Mi'],
    ["bool", bool(), "Yes", true],
    ["bool", bool(), "off", false],
    ["bool", bool(), "2", '"2" is not true or false'],
    ["host", host(), "[::1]", "::1"],
    ["host", host(), "fe80::1%eth0", "fe80::1%eth0"],
    ["host", host(), "0.0.0.0", "0.0.0.0"],
    ["host", host(), "[::1]:7700", '"[::1]:7700" is not a host without a port, such as 10.0.0.7 or ::1'],
    ["host", host(), "http://a", '"http://a" is not a host without a port, such as 10.0.0.7 or ::1'],
    ["host", host(), "", '"" is not a host without a port, such as 10.0.0.7 or ::1'],
    ["int", int({ min: 1, max: 10 }), "10", 10],
    ["int", int({ min: 1, max: 10 }), "11", "11 is more than 10"],
    ["int", int(), "1.5", '"1.5" is not a whole number'],
    ["decimal", decimal({ max: 1 }), "0.55", 0.55],
    ["decimal", decimal(), "1e400", '"1e400" is not a number'],
    ["text", text(), "1.10", "1.10"],
    ["text", text(), "", '"" is not a non-empty string'],
    ["text", text({ pattern: /^[a-z]+$/, expects: "a word" }), "A", '"A" is not a word'],
    ["oneOf", oneOf(["info", "warn"]), "WARN", "warn"],
    ["oneOf", oneOf(["info", "warn"]), "loud", '"loud" is not one of info, warn'],
    ["address", address(), "127.0.0.1:7700", { host: "127.0.0.1", port: 7700 }],
    ["address", address(), "[::1]:7700", { host: "::1", port: 7700 }],
    ["address", address(), "node-1.example:0", { host: "node-1.example", port: 0 }],
    ["address", address(), "localhost", '"localhost" is not an address HOST:PORT'],
    ["address", address(), "localhost:70000", '"localhost:70000" is not an address HOST:PORT'],
    ["server", serverAddress(), "https://[::1]:7700/", { host: "::1", port: 7700, scheme: "https" }],
    ["server", serverAddress(), "https://a.b", { host: "a.b", port: 443, scheme: "https" }],
    ["server", serverAddress(), "http://a.b:7700", { host: "a.b", port: 7700, scheme: "http" }],
    ["server", serverAddress(), "a.b:7700", { host: "a.b", port: 7700, scheme: undefined }],
    ["server", serverAddress(), "a.b", '"a.b" is not an address HOST:PORT or https://HOST:PORT: it has no port'],
    [
      "server",
      serverAddress(),
      "https://me:secret@a.b",
      '"https://***@a.b" is not an address HOST:PORT or https://HOST:PORT: it must have no user and no password',
    ],
    ["url", url("https://a.b/x", { schemes: ["https"], paths: true }), "HTTPS://a.b/y", "HTTPS://a.b/y"],
    [
      "url",
      url("https://a.b", { schemes: ["https"] }),
      "https://me:secret@a.b",
      '"https://***@a.b" is not a URL such as https://a.b: it must have no user and no password',
    ],
    [
      "url",
      url("https://a.b", { schemes: ["https", "http"] }),
      "a.b",
      '"a.b" is not a URL such as https://a.b: it does not begin with https:// or http://',
    ],
    ["address", address(), "me:secret@a.b", '"***@a.b" is not an address HOST:PORT'],
    ["address", address(), "[:::]:1", '"[:::]:1" is not an address HOST:PORT'],
    ["address", address(), "10.0.0.256:1", '"10.0.0.256:1" is not an address HOST:PORT'],
    ["host", host(), "localhost:7700", '"localhost:7700" is not a host without a port, such as 10.0.0.7 or ::1'],
    ["list", list(text()), "a, b,,c", ["a", "b", "c"]],
    ["list", list(int()), ["1", "2"], [1, 2]],
    ["list", list(int()), ["1", "x"], '"x" is not a whole number'],
    ["list", list(int()), { a: "1" }, '{"a":"1"} is not a list'],
    ["list", list(int()), "1,".repeat(1_001), "has more than 1000 items"],
    ["map", stringMap(), "zone=a,rack=7", { zone: "a", rack: "7" }],
    ["map", stringMap(), { zone: "a" }, { zone: "a" }],
    ["map", stringMap(), ["zone=a", "rack=7,row=1"], { zone: "a", rack: "7", row: "1" }],
    ["map", stringMap(), ["zone=a", "rack"], '["zone=a","rack"] is not a map of strings such as zone=a,rack=7'],
    ["map", stringMap(), "zone", '"zone" is not a map of strings such as zone=a,rack=7'],
    ["map", stringMap(), { zone: ["a"] }, '{"zone":["a"]} is not a map of strings such as zone=a,rack=7'],
    ["optional", optional(int()), "5", 5],
    ["another schema", z.enum(["a"]), "a", "a"],
  ] as [string, z.ZodMiniType, Written, unknown][])("should read %s", (_, schema, written, value) => {
    expect(read(schema, written)).toEqual(value);
  });

  it("should read a map's string only into own properties", () => {
    const value = read(stringMap(), "__proto__=x,constructor=y");
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe("writeValue()", () => {
  it.each([
    [duration(), 90_000, "1m30s"],
    [bytes(), 1_024, "1024"],
    [bool(), true, "true"],
    [address(), { host: "::1", port: 7700 }, "[::1]:7700"],
    [serverAddress(), { host: "::1", port: 7700, scheme: "https" }, "https://[::1]:7700"],
    [list(duration()), [1_000, 2_000], ["1s", "2s"]],
    [stringMap(), { zone: "a" }, { zone: "a" }],
    [optional(duration()), 1_000, "1s"],
    [optional(duration()), undefined, undefined],
    [z.enum(["a"]), "a", "a"],
  ] as [z.ZodMiniType, unknown, unknown][])("should write what is read back", (schema, value, written) => {
    expect(writeValue(schema, value)).toEqual(written);
    if (written !== undefined) expect(schema.parse(written)).toEqual(value);
  });
});

describe("describeValue()", () => {
  it.each([
    [duration({ minMs: 1_000, maxMs: 60_000 }), "a duration such as 15s, 1h30m or 250ms, 1s to 1m"],
    [duration({ minMs: 1_000 }), "a duration such as 15s, 1h30m or 250ms, at least 1s"],
    [int({ min: 2, max: 5 }), "a whole number, 2 to 5"],
    [decimal({ max: 5 }), "a number, at most 5"],
    [optional(list(int())), "a list, each a whole number"],
    [oneOf(["a", "b"]), "one of a, b"],
    [z.enum(["a"]), "a value"],
  ] as [z.ZodMiniType, string][])("should say what may be written", (schema, words) => {
    expect(describeValue(schema)).toBe(words);
  });
});
