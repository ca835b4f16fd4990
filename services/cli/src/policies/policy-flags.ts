import { POLICY_FIELD_NAMES, POLICY_FIELDS, type PolicyField } from "@rollcall/domain/policy-fields";

/** The name of a value in HealthPolicyValues. */
export type PolicyValueName = (typeof POLICY_FIELDS)[keyof typeof POLICY_FIELDS]["name"];

/** Every value's name, in the order in which they are shown. */
export const POLICY_VALUE_NAMES: readonly PolicyValueName[] = POLICY_FIELD_NAMES.map(
  (field) => POLICY_FIELDS[field].name,
);

/** The flags of all values: "--unhealthy-after <duration>" and what it is for. */
export const POLICY_VALUE_FLAGS: readonly { readonly flag: string; readonly doc: string }[] = POLICY_FIELD_NAMES.map(
  (field) => {
    const { name, kind, doc }: PolicyField = POLICY_FIELDS[field];
    return { flag: `--${dashed(name)} <${kind}>`, doc };
  },
);

/** "unhealthyAfter" as its flag is called. */
export function dashed(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
