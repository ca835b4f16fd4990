/** One condition on one label. Plain data, so that a store can turn it into a query of its own. */
export type Requirement =
  /** `a=b`, `a==b`: the label is there and has the value. */
  | { readonly operator: "="; readonly key: string; readonly value: string }
  /** `a!=b`: the label has another value or is not there. */
  | { readonly operator: "!="; readonly key: string; readonly value: string }
  /** `a in (x,y)`: the label is there with one of the values, which are sorted, distinct and at least one. */
  | { readonly operator: "in"; readonly key: string; readonly values: readonly string[] }
  /** `a notin (x,y)`: the label has none of the values or is not there. */
  | { readonly operator: "notin"; readonly key: string; readonly values: readonly string[] }
  /** `a`: the label is there. */
  | { readonly operator: "exists"; readonly key: string }
  /** `!a`: the label is not there. */
  | { readonly operator: "!exists"; readonly key: string }
  /** `a>1`: the label is there, is a whole number (see `labelNumber()`), and is greater. */
  | { readonly operator: ">"; readonly key: string; readonly value: number }
  /** `a<1`: likewise, and is less. */
  | { readonly operator: "<"; readonly key: string; readonly value: number };

/** Conditions that must all hold. The empty selector matches everything. */
export type Selector = readonly Requirement[];

/** Tell whether labels meet every condition of a selector. */
export function matches(selector: Selector, labels: ReadonlyMap<string, string>): boolean {
  return selector.every((requirement) => meets(requirement, labels.get(requirement.key)));
}

/** Write a selector in one fixed form that `parseSelector()` reads as the same selector. */
export function formatSelector(selector: Selector): string {
  return selector.map(formatRequirement).join(",");
}

/**
 * Read a label's value as the comparisons `>` and `<` do: 1 to 15 digits, so that every value is exact. Anything else
 * is no number, null, and meets neither.
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

/** The empty value alone needs a comma beside it, because nothing at all between the brackets is an error. */
function formatValues(values: readonly string[]): string {
  return values.length === 1 && values[0] === "" ? "," : values.join(",");
}
