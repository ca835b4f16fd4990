import type { Requirement } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";

/** A selector's requirement as a condition on effective labels, in SQL. */
export type LabelCondition =
  /**
   * A label with this key must exist and meet the condition. The query joins the label, so that the label's index
   * can drive the query.
   */
  | { readonly kind: "present"; readonly key: string; readonly value: ConditionOn | null }
  /** No label with this key may meet the condition. */
  | { readonly kind: "absent"; readonly key: string; readonly value: ConditionOn | null };

/** Makes an SQL condition on a column of label values. */
export type ConditionOn = (column: RawBuilder<unknown>) => RawBuilder<SqlBool>;

/** Convert a requirement to a condition that is equivalent to the domain's `matches()`. */
export function toCondition(requirement: Requirement): LabelCondition {
  const { key } = requirement;
  switch (requirement.operator) {
    case "=":
      return { kind: "present", key, value: equalTo(requirement.value) };
    case "!=":
      return { kind: "absent", key, value: equalTo(requirement.value) };
    case "in":
      return { kind: "present", key, value: oneOf(requirement.values) };
    case "notin":
      return { kind: "absent", key, value: oneOf(requirement.values) };
    case "exists":
      return { kind: "present", key, value: null };
    case "!exists":
      return { kind: "absent", key, value: null };
    case ">":
      return { kind: "present", key, value: numeric(sql`>`, requirement.value) };
    case "<":
      return { kind: "present", key, value: numeric(sql`<`, requirement.value) };
  }
}

function equalTo(value: string): ConditionOn {
  return (column) => sql<SqlBool>`${column} = ${value}`;
}

function oneOf(values: readonly string[]): ConditionOn {
  return (column) => sql<SqlBool>`${column} = any(${values}::text[])`;
}

function numeric(operator: RawBuilder<unknown>, limit: number): ConditionOn {
  // Use a case expression, because Postgres can evaluate the parts of an "and" in any order, and the cast fails on
  // text that is not a number.
  return (column) => sql<SqlBool>`
    case when ${column} ~ '^[0-9]{1,15}$'
      then ${column}::bigint ${operator} ${limit}::double precision else false end`;
}
