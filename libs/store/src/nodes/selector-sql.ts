import type { Requirement } from "@rollcall/domain";
import { type RawBuilder, type SqlBool, sql } from "kysely";

/** A requirement as SQL over effective labels. */
export type LabelCondition =
  /**
   * A condition on the one label with this key, which has to be there: joined, so that its index can lead the query.
   */
  | { readonly kind: "present"; readonly key: string; readonly value: ConditionOn | null }
  /** No label with this key meets the condition. */
  | { readonly kind: "absent"; readonly key: string; readonly value: ConditionOn | null };

/** Writes a condition on a column of values. */
export type ConditionOn = (column: RawBuilder<unknown>) => RawBuilder<SqlBool>;

/** Turn a requirement into a condition that means the same as the domain's `matches()`. */
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
  // A case, because Postgres may try the parts of an "and" in any order, and the cast fails on what is no number.
  return (column) => sql<SqlBool>`
    case when ${column} ~ '^[0-9]{1,15}$'
      then ${column}::bigint ${operator} ${limit}::double precision else false end`;
}
