import type { HealthPolicyScope, SetHealthPolicyRequest } from "@rollcall/api/rollcall/admin/v1/health_policy_pb";
import {
  editPolicy as decideEdit,
  POLICY_FIELD_NAMES,
  type PolicyEntry,
  type PolicyPart,
  type PolicyScope,
} from "@rollcall/domain";
import { refuse, refuseFields } from "@rollcall/errors";
import { type Db, findNode, type Node } from "@rollcall/store";
import { valueName, valuesFromProto } from "./convert.ts";

/** Finds a node by id. The implementation decides whether to lock the node. */
export type FindNode = (id: string) => Promise<Node>;

/** Finds nodes without locking them. */
export function nodeFinder(db: Db): FindNode {
  return (id) => findNode(db, id);
}

/** Parse the scope of a policy. Throws NODE_NOT_FOUND or NODE_IS_ORCHESTRATOR. */
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
      const text = `node ${node.id} is a control-plane process; its health depends only on its lease`;
      throw refuse("NODE_IS_ORCHESTRATOR", text, { metadata: { node: node.id } });
    }
    default:
      throw refuseFields("INVALID_REQUEST", [{ field: "scope", description: "set the scope of the policy" }]);
  }
}

/**
 * Apply a request to a policy, which is null for a new one. Throws INVALID_REQUEST or INVALID_SELECTOR.
 *
 * @param scope The scope in the request.
 */
export function editPolicy(
  scope: PolicyScope,
  current: PolicyEntry | null,
  request: SetHealthPolicyRequest,
): PolicyEntry {
  const { selector, priority } = request;
  const parts = parsePaths(request.updateMask?.paths ?? []);
  const edited = decideEdit(scope, current, { values: valuesFromProto(request.values), parts, selector, priority });
  if (edited.ok) return edited.entry;
  const { reason, field, description, position } = edited.flaw;
  if (position === null) throw refuseFields(reason, [{ field, description }]);
  const metadata = { position: String(position) };
  throw refuse(reason, description, { metadata, violations: [{ field, description }] });
}

/** The parts of a policy, by their paths in a field mask. */
const PARTS: ReadonlyMap<string, PolicyPart> = new Map<string, PolicyPart>([
  ["selector", "selector"],
  ["priority", "priority"],
  ...POLICY_FIELD_NAMES.map((field) => [`values.${valueName(field)}`, field] as const),
]);

/** Parse a field mask; null for none, which means all fields. Throws INVALID_REQUEST. */
function parsePaths(paths: readonly string[]): ReadonlySet<PolicyPart> | null {
  if (paths.length === 0) return null;
  const parts = paths.map((path) => PARTS.get(path));
  const known = parts.filter((part) => part !== undefined);
  if (known.length === parts.length) return new Set(known);
  const description = `names a field that cannot be changed; the fields are ${[...PARTS.keys()].join(", ")}`;
  throw refuseFields("INVALID_REQUEST", [{ field: "update_mask", description }]);
}
