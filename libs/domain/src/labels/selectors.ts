/** One condition on one label. This is plain data, so that a store can turn it into a query. */
export type Requirement =
  /** `a=b`, `a==b`: the label exists with this value. */
  | { readonly operator: "="; readonly key: string; readonly value: string }
  /** `a!=b`: the label has a different value, or does not exist. */
  | { readonly operator: "!="; readonly key: string; readonly value: string }
  /**
   * `a in (x,y)`: the label exists with one of the values. The values are sorted and distinct, and there is at
   * least one.
   */
  | { readonly operator: "in"; readonly key: string; readonly values: readonly string[] }
  /** `a notin (x,y)`: the label has none of the values, or does not exist. */
  | { readonly operator: "notin"; readonly key: string; readonly values: readonly string[] }
  /** `a`: the label exists. */
  | { readonly operator: "exists"; readonly key: string }
  /** `!a`: the label does not exist. */
  | { readonly operator: "!exists"; readonly key: string }
  /**
   * `a>1`: the label exists, and its value is a whole number (see `labelNumber()`) greater than the given
   * number.
   */
  | { readonly operator: ">"; readonly key: string; readonly value: number }
  /** `a<1`: like `>`, but less than the given number. */
  | { readonly operator: "<"; readonly key: string; readonly value: number };

/** Conditions that must all hold. The empty selector matches everything. */
export type Selector = readonly Requirement[];

/** Whether labels meet every condition of a selector. */
export function matches(selector: Selector, labels: ReadonlyMap<string, string>): boolean {
  return selector.every((requirement) => meets(requirement, labels.get(requirement.key)));
}

/** Format a selector in a canonical form. `parseSelector()` parses it into the same selector. */
export function formatSelector(selector: Selector): string {
  return selector.map(formatRequirement).join(",");
}

/**
 * Parse a label's value for the comparisons `>` and `<`: 1 to 15 digits, so that every number is exact. Null
 * for any other value; both comparisons are then false.
 */
export function labelNumber(value: string): number | null {
  return /^[0-9]{1,15}$/.test(value) ? Number(value) : null;
}

function meets(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case "=":
      return value === requirement.value;
    case "!=":
      return value !== requirement.value;
    case "in":
      return value !== undefined && requirement.values.includes(value);
    case "notin":
      return value === undefined || !requirement.values.includes(value);
    case "exists":
      return value !== undefined;
    case "!exists":
      return value === undefined;
    case ">": {
      const number = value === undefined ? null : labelNumber(value);
      return number !== null && number > requirement.value;
    }
    case "<": {
      const number = value === undefined ? null : labelNumber(value);
      return number !== null && number < requirement.value;
    }
  }
}

function formatRequirement(requirement: Requirement): string {
  const { operator, key } = requirement;
  switch (operator) {
    case "=":
    case "!=":
    case ">":
    case "<":
      return `${key}${operator}${requirement.value}`;
    case "in":
    case "notin":
      return `${key} ${operator} (${formatValues(requirement.values)})`;
    case "exists":
      return key;
    case "!exists":
      return `!${key}`;
  }
}

/** Write a single empty value as a comma: empty parentheses are a syntax error. */
function formatValues(values: readonly string[]): string {
  return values.length === 1 && values[0] === "" ? "," : values.join(",");
}
