import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { FieldRulesSchema } from "@rollcall/api/buf/validate/validate_pb";
import { boundsOf } from "./field-rules.ts";

describe("boundsOf()", () => {
  it("should distinguish inclusive bounds from exclusive ones", () => {
    const inside = create(FieldRulesSchema, {
      type: {
        case: "double",
        value: { greaterThan: { case: "gte", value: 0.5 }, lessThan: { case: "lte", value: 1.5 } },
      },
    });
    expect(boundsOf(inside)).toEqual({ minimum: 0.5, maximum: 1.5 });
    const outside = create(FieldRulesSchema, {
      type: { case: "double", value: { greaterThan: { case: "gt", value: 0 }, lessThan: { case: "lt", value: 1 } } },
    });
    expect(boundsOf(outside)).toEqual({ exclusiveMinimum: 0, exclusiveMaximum: 1 });
    expect(boundsOf(undefined)).toEqual({});
  });
});
