import { Role, RoleSchema } from "@rollcall/api/rollcall/admin/v1/access_pb";
import { enumWord } from "./words.ts";

/** What a page may offer its reader. The server refuses the rest all the same. */
export interface Rights {
  /** Decide about nodes, join tokens, policies and the brake. */
  readonly operate: boolean;
  /** Run work and read its output. */
  readonly submit: boolean;
  /** Decide who may call, and read the audit log. */
  readonly administer: boolean;
}

/** What a role may do: see the table in docs/access.md. */
export function rightsOf(role: Role): Rights {
  const admin = role === Role.ADMIN;
  return { operate: admin || role === Role.OPERATOR, submit: admin || role === Role.SUBMITTER, administer: admin };
}

/** A role's name: "operator". */
export function roleWord(role: Role): string {
  return enumWord(RoleSchema, role).toLowerCase();
}
