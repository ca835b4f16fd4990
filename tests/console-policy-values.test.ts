import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { HealthPolicyValuesSchema } from "../libs/api/src/gen/rollcall/admin/v1/health_policy_pb.ts";
import { POLICY_FIELDS, type PolicyField } from "../libs/domain/src/policy/policy-fields.ts";
import { parsePolicyValue } from "../services/cli/src/policies/policy-options.ts";
import { policyValueFlaw, policyValueText, toPolicyValues } from "../services/console/web/src/state/policy-values.ts";

const TEXTS: Readonly<Record<PolicyField["kind"], readonly string[]>> = {
  duration: ["1500ms", "90s", "5m", "2h", "1h30m"],
  hold: ["0s", "30s", "10m"],
  count: ["0", "3"],
  celsius: ["0", "90"],
  switch: ["on", "off"],
};
const CASES = Object.values(POLICY_FIELDS).flatMap((field: PolicyField) =>
  TEXTS[field.kind].map((text) => [field.name, text, field] as const),
);

describe("the console's form of a policy", () => {
  it.each(CASES)("should read %s %s as the CLI does, because it shows the command to copy", (name, text, field) => {
    expect(policyValueFlaw(field.kind, text)).toBeNull();
    const values = create(HealthPolicyValuesSchema, toPolicyValues({ [name]: text }));
    expect(values).toEqual(create(HealthPolicyValuesSchema, { [name]: parsePolicyValue(field, text) }));
    const shown = policyValueText(values, name);
    expect(parsePolicyValue(field, shown)).toEqual(parsePolicyValue(field, text));
  });

  it.each(["yes", "no", "true", "ON"])("should refuse %s as a switch", (text) => {
    expect(policyValueFlaw("switch", text)).toBe("on or off");
  });
});
