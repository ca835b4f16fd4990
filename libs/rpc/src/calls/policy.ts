import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { Role } from "@rollcall/identity";

/**
 * Who can call a method. "anyone" and "node" require no token and ignore any token that is sent, so that these methods
 * work while the store is unavailable. A "node" method verifies the caller's key itself. A "replica" method is for
 * other processes of the cluster, see ReplicaAuthenticator.
 */
export type MethodCaller = "anyone" | "node" | "replica" | Role;

/** The policy of a method. Every method must have one before a server starts. */
export interface MethodPolicy {
  readonly caller: MethodCaller;
  /** The maximum duration of a unary call, whatever deadline the caller sets. 0 for streams, which have no deadline. */
  readonly deadlineMs: number;
  /** Whether repeating the call has no further effect, so that a client may retry automatically. */
  readonly idempotent: boolean;
  /**
   * Whether the method decides from what its process has read of the log, instead of querying the database. Such a
   * method waits for the revision that its caller has seen. Default false.
   */
  readonly readsLog?: boolean;
}

/** Policies, keyed by method, such as "rollcall.registry.v1.RegistryService/GetNode". Combine tables by spreading. */
export type PolicyTable = Readonly<Record<string, MethodPolicy>>;

/**
 * The policies of one service, keyed by the local names of its methods. A missing or misspelled method is a compile
 * error.
 */
export type ServicePolicies<S extends DescService> = {
  readonly [M in keyof S["method"]]: MethodPolicy;
};

/** Create the policy table of one service. */
export function definePolicies<S extends DescService>(service: S, rows: ServicePolicies<S>): PolicyTable {
  const byLocalName: Readonly<Record<string, MethodPolicy | undefined>> = rows;
  const table: Record<string, MethodPolicy> = {};
  for (const method of service.methods) {
    const row = byLocalName[method.localName];
    if (row !== undefined) table[`${service.typeName}/${method.name}`] = row;
  }
  return table;
}

/**
 * List the problems of a table: methods without a row, unary methods without a deadline, and streams with a deadline.
 */
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

/** The name of a method in policies, logs and metrics: "rollcall.registry.v1.RegistryService/GetNode". */
export function methodName(method: DescMethod): string {
  return `${method.parent.typeName}/${method.name}`;
}

/** The name of a code in logs and metrics, such as "ok" or "not_found". */
export function codeName(code: Code | undefined): string {
  return code === undefined ? "ok" : codeToString(code);
}
