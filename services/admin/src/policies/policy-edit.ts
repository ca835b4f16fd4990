import type { HealthPolicyScope, SetHealthPolicyRequest } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import {
  formatSelector,
  type GroupPolicy,
  POLICY_FIELD_NAMES,
  type PolicyEntry,
  type PolicyOverride,
  type PolicyScope,
  parseSelector,
  type Selector,
} from "@rollcall/domain";
import { type FieldViolation, refuse, refuseFields } from "@rollcall/errors";
import { type Db, findNode, type NodeRecord } from "@rollcall/store";
import { valueName, valuesFromProto } from "./convert.ts";

/** Finds the node that is meant by an id or a prefix; whether it is locked is the finder's business. */
export type FindNode = (ref: string) => Promise<NodeRecord>;

/** Finds nodes without locking them. */
export function nodeFinder(db: Db): FindNode {
  return (ref) => findNode(db, ref);
}

/** For whom a policy is. Throws NODE_NOT_FOUND, AMBIGUOUS_NODE or NODE_IS_ORCHESTRATOR. */
export async function parseScope(message: HealthPolicyScope | undefined, find: FindNode): Promise<PolicyScope> {
  const scope = message?.scope;
  switch (scope?.case) {
    case "default":
      return { kind: "default" };
    case "group":
      return { kind: "group", name: scope.value };
    case "node": {
      const node = await find(scope.value);
      if (node.type === "COMPUTE") return { kind: "node", nodeId: node.id };
      const text = `node ${node.id} is an orchestrator; its lease alone says how it fares`;
      throw refuse("NODE_IS_ORCHESTRATOR", text, { metadata: { node: node.id } });
    }
    default:
      throw invalid([{ field: "scope", description: "say for whom the policy is" }]);
  }
}

/**
 * What a policy becomes by a request, given what it is now or null. Throws INVALID_REQUEST or INVALID_SELECTOR.
 *
 * @param scope that of the request.
 */
export function editPolicy(
  scope: PolicyScope,
  current: PolicyEntry | null,
  request: SetHealthPolicyRequest,
): PolicyEntry {
  const wanted = parsePaths(request.updateMask?.paths ?? []);
  const before = current === null || wanted === null ? null : overrideOf(current);
  const override = editValues(before ?? {}, valuesFromProto(request.values), wanted);
  if (Object.keys(override).length === 0) {
    const description = "a policy sets at least one value; delete it to have everything inherited";
    throw invalid([{ field: "values", description }]);
  }
  if (scope.kind === "group") {
    const group = current?.kind === "group" ? current.group : null;
    return { kind: "group", group: editGroup(scope.name, group, request, wanted, override) };
  }
  if (request.selector !== "" || request.priority !== 0) {
    const description = "only a group has a selector and a priority";
    throw invalid([{ field: request.selector === "" ? "priority" : "selector", description }]);
  }
  return { ...scope, override };
}

/** What a mask may name; null for no mask, which means everything. */
type Paths = ReadonlySet<string> | null;

const KNOWN_PATHS: ReadonlySet<string> = new Set(["selector", "priority", ...POLICY_FIELD_NAMES.map(valuePath)]);

function valuePath(field: (typeof POLICY_FIELD_NAMES)[number]): string {
  return `values.${valueName(field)}`;
}

function parsePaths(paths: readonly string[]): Paths {
  if (paths.length === 0) return null;
  const unknown = paths.filter((path) => !KNOWN_PATHS.has(path));
  if (unknown.length === 0) return new Set(paths);
  const description = `names what cannot be changed; it may name ${[...KNOWN_PATHS].join(", ")}`;
  throw invalid([{ field: "update_mask", description }]);
}

function editValues(before: PolicyOverride, given: PolicyOverride, wanted: Paths): PolicyOverride {
  if (wanted === null) return given;
  const entries = POLICY_FIELD_NAMES.flatMap((field) => {
    const value = wanted.has(valuePath(field)) ? given[field] : before[field];
    return value === undefined ? [] : [[field, value] as const];
  });
  // Each value was taken from the same field.
  return Object.fromEntries(entries) as PolicyOverride;
}

function editGroup(
  name: string,
  current: GroupPolicy | null,
  request: SetHealthPolicyRequest,
  wanted: Paths,
  override: PolicyOverride,
): GroupPolicy {
  const keeps = (path: string) => current !== null && wanted !== null && !wanted.has(path);
  const priority = keeps("priority") && current !== null ? current.priority : request.priority;
  const selector =
    keeps("selector") && current !== null ? current.selector : parseGroupSelector(name, request.selector);
  return { name, priority, selector, override };
}

function parseGroupSelector(name: string, text: string): Selector {
  const parsed = parseSelector(text);
  if (!parsed.ok) {
    throw refuse("INVALID_SELECTOR", parsed.message, {
      metadata: { position: String(parsed.position) },
      violations: [{ field: "selector", description: parsed.message }],
    });
  }
  if (formatSelector(parsed.selector) !== "") return parsed.selector;
  const description = `group ${name} needs a selector; what is to hold for every node is the default's`;
  throw invalid([{ field: "selector", description }]);
}

function overrideOf(entry: PolicyEntry): PolicyOverride {
  return entry.kind === "group" ? entry.group.override : entry.override;
}

function invalid(violations: readonly FieldViolation[]) {
  return refuseFields("INVALID_REQUEST", violations);
}
