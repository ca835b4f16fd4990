import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { Role } from "@rollcall/identity";

/**
 * Who may call a method. "anyone" and "node" ask for no token, and a token that is sent is not looked at, so that these
 * methods answer while the store is away; a "node" method proves the caller's key by itself, a "replica" method is for
 * other processes of the cluster, see ReplicaAuthenticator.
 */
export type MethodCaller = "anyone" | "node" | "replica" | Role;

/** The row that each method must have before a server starts. */
export interface MethodPolicy {
  readonly caller: MethodCaller;
  /** The longest a unary call may take, whatever the caller asks. 0 for streams alone: they have no deadline. */
  readonly deadlineMs: number;
  /** Whether the same call twice has the effect of one, so that a client may retry by itself. */
  readonly idempotent: boolean;
  /**
   * Whether it decides by what its process has read of the log, and not by what the database says as it is called. Such
   * a method waits for the revision that its caller has seen. Default false.
   */
  readonly readsLog?: boolean;
}

/** Policy rows by method, as "rollcall.registry.v1.RegistryService/GetNode". Tables are joined by spreading. */
export type PolicyTable = Readonly<Record<string, MethodPolicy>>;

/** The rows of one service by its methods' local names; a missing or misspelled method does not compile. */
export type ServicePolicies<S extends DescService> = {
  readonly [M in keyof S["method"]]: MethodPolicy;
};

/** Make the policy table of one service. */
export function definePolicies<S extends DescService>(service: S, rows: ServicePolicies<S>): PolicyTable {
  const byLocalName: Readonly<Record<string, MethodPolicy | undefined>> = rows;
  const table: Record<string, MethodPolicy> = {};
  for (const method of service.methods) {
    const row = byLocalName[method.localName];
    if (row !== undefined) table[`${service.typeName}/${method.name}`] = row;
  }
  return table;
}

/** What is wrong with a table: methods without a row, unary methods without a deadline, streams with one. */
export function policyProblems(services: readonly DescService[], table: PolicyTable): string[] {
  const problems: string[] = [];
  for (const method of services.flatMap((service) => service.methods)) {
    const name = `${method.parent.typeName}/${method.name}`;
    const row = Object.hasOwn(table, name) ? table[name] : undefined;
    if (row === undefined) {
      problems.push(`${name} has no policy row`);
    } else if (method.methodKind === "unary" && !(row.deadlineMs > 0)) {
      problems.push(`${name} is unary and needs a deadline`);
    } else if (method.methodKind !== "unary" && row.deadlineMs !== 0) {
      problems.push(`${name} is a stream and takes no deadline`);
    }
  }
  return problems;
}

/** How a method is named in policies, logs and metrics: "rollcall.registry.v1.RegistryService/GetNode". */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** How a code is written in logs and metrics: "ok", "not_found". */
export function codeName(code: Code | undefined): string {
  return code === undefined ? "ok" : codeToString(code);
}
