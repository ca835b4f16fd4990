import { create, type DescMessage, fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { ListValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { CreateAccessTokenRequestSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { SetHealthPolicyRequestSchema } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import { EventSchema, ListEventsRequestSchema } from "@rollcall/api/rollcall/events/v1/events_pb";
import { ReportHeartbeatRequestSchema } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { NodeInfoSchema } from "@rollcall/api/rollcall/node/v1/node_pb";
import { describeError } from "@rollcall/errors";
import { createRequestValidator } from "./request-validator.ts";

const validator = createRequestValidator();

/** List the fields of a message that violate rules; null if none do. */
function brokenFields<D extends DescMessage>(desc: D, init: MessageInitShape<D>) {
  try {
    validator.check(desc, create(desc, init));
    return null;
  } catch (error) {
    const { reason, violations } = describeError(error);
    return { reason, fields: violations.map(({ field }) => field) };
  }
}

const invalid = (...fields: readonly string[]) => ({ reason: "INVALID_REQUEST", fields });

describe("a text that the store cannot keep", () => {
  it.each(["\0", "a\0b", "\ud800", "\udc00\ud800", "end\udfff"])("should be refused: %j", (text) => {
    expect(brokenFields(NodeInfoSchema, { hostname: text })).toEqual(invalid("hostname"));
  });

  it.each(["", "plain", "😀", "\u0001\u001f\u007f", "\ufffd\uffff"])("should be accepted: %j", (text) => {
    expect(brokenFields(NodeInfoSchema, { hostname: text })).toBeNull();
  });

  it("should be found in lists, maps, oneofs and messages within them, each by its path", () => {
    const bad = "\0";
    expect(
      brokenFields(NodeInfoSchema, {
        os: { kernel: bad },
        gpus: [{ name: "fine" }, { name: bad }],
        interfaces: [{ name: "eth0", addresses: ["10.0.0.1", bad] }],
        labels: { [bad]: "v", k: bad },
      }),
    ).toEqual(invalid("os.kernel", "gpus[1].name", "interfaces[0].addresses[1]", 'labels["\\u0000"]', 'labels["k"]'));
    const hello = { nodeId: "n", signature: new Uint8Array(64), bootId: bad };
    const open = { nonce: new Uint8Array(32), hello };
    expect(
      brokenFields(ReportHeartbeatRequestSchema, {
        nodeId: "n",
        step: { case: "open", value: open },
      })?.fields,
    ).toContain("open.hello.boot_id");
  });

  it("should be found in JSON, both in recursive types and in their plain form", () => {
    const after = { deep: { deeper: ["\0"] } };
    expect(brokenFields(EventSchema, { after })?.fields).toEqual(['after["deep"]["deeper"]["0"]']);
    const list = fromJson(ListValueSchema, [[["\0"]]]);
    expect(brokenFields(ListValueSchema, list)?.fields).toEqual([
      "values[0].list_value.values[0].list_value.values[0].string_value",
    ]);
  });

  it("should be reported as often as fits into an error", () => {
    const types = Array.from({ length: 10_000 }, () => "\0");
    const { fields = [] } = brokenFields(ListEventsRequestSchema, { types }) ?? {};
    expect(fields.length).toBeGreaterThan(30);
    expect(fields.length).toBeLessThanOrEqual(50);
  });
});

describe("a timestamp", () => {
  const [first, last] = [-62_135_596_800n, 253_402_300_799n];

  it.each([
    [first, 0],
    [last, 999_999_999],
    [0n, 0],
  ])("should be accepted: %d s and %d ns", (seconds, nanos) => {
    expect(brokenFields(ListEventsRequestSchema, { fromTime: { seconds, nanos } })).toBeNull();
  });

  it.each([
    [first - 1n, 0],
    [last + 1n, 0],
    [2n ** 63n - 1n, 0],
    [-(2n ** 63n), 0],
    [0n, -1],
    [0n, 1_000_000_000],
  ])("should be refused: %d s and %d ns", (seconds, nanos) => {
    const time = { seconds, nanos };
    expect(brokenFields(ListEventsRequestSchema, { fromTime: time, untilTime: time })).toEqual(
      invalid("from_time", "until_time"),
    );
  });
});

describe("a duration", () => {
  const most = 315_576_000_000n;
  const check = (seconds: bigint, nanos: number) =>
    brokenFields(CreateAccessTokenRequestSchema, { name: "x", ttl: { seconds, nanos } });

  it.each([
    [most + 1n, 0],
    [-most - 1n, 0],
    [2n ** 63n - 1n, 999_999_999],
    [1n, -1],
    [-1n, 1],
    [0n, 1_000_000_000],
    [1n, 2_147_483_647],
  ])("should be refused: %d s and %d ns", (seconds, nanos) => {
    expect(check(seconds, nanos)?.fields).toContain("ttl");
  });

  it("should only be accepted with equal signs", () => {
    expect(check(60n, 999_999_999)?.fields ?? []).not.toContain("ttl");
  });
});

describe("a field mask", () => {
  const check = (paths: string[]) =>
    brokenFields(SetHealthPolicyRequestSchema, {
      scope: { scope: { case: "node", value: "n" } },
      updateMask: { paths },
    });

  it.each(["values", "values.unhealthy_after", "a.b_c.d"])("should be accepted: %j", (path) => {
    expect(check([path])).toBeNull();
  });

  it.each(["Values", "values.unhealthyAfter", "a__b", "a_", "a_1", "a..b", ".a", "a.", "a b", "a,b", "a\0", ""])(
    "should be refused: %j",
    (path) => {
      expect(check(["values", path])).toEqual(invalid("update_mask.paths[1]"));
    },
  );
});
