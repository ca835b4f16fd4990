import { Role, RoleSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { enumWord } from "./words.ts";

/** What a page offers its user. The server checks every call anyway. */
export interface Rights {
  /** Manage nodes, join tokens, policies and the brake. */
  readonly operate: boolean;
  /** Run work and read its output. */
  readonly submit: boolean;
  /** Manage access, and read the audit log. */
  readonly administer: boolean;
}

/** The rights of a role: see the table in docs/access.md. */
export function rightsOf(role: Role): Rights {
  const admin = role === Role.ADMIN;
  return { operate: admin || role === Role.OPERATOR, submit: admin || role === Role.SUBMITTER, administer: admin };
}

/** A role's name: "operator". */
export function roleWord(role: Role): string {
  return enumWord(RoleSchema, role).toLowerCase();
}
