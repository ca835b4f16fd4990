import type { ApplyStateRequest } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import { type DeclaredStep, planDeclared } from "@rollcall/domain";
import { type FieldViolation, refuse, refuseFields } from "@rollcall/errors";
import { type Role, roleSuffices } from "@rollcall/identity";
import { type Db, readDeclaredObjects } from "@rollcall/store";
import type { WebhookParts } from "../webhooks/webhook-services.ts";
import { type ExistingObjects, readExisting, refOf } from "./existing-objects.ts";
import { nodeOfRef, type ObjectRef, ROLE_OF_KIND, readObjects, type WantedObject } from "./read-objects.ts";

/** A caller, as far as it matters here. */
export interface RoleHolder {
  readonly role: Role;
}

/** What both methods are asked for. */
export type StateRequest = Pick<ApplyStateRequest, "objects" | "owner" | "prune" | "takeOver">;

/** Objects that one call prunes at most, and of an owner's that it looks at. */
const MOST_PRUNED = 1_000;

/** Objects that one call declares, each label by itself. */
const MOST_OBJECTS = 2_000;

/** A request whose objects are right by themselves. */
export interface CheckedState {
  readonly request: StateRequest;
  readonly objects: ReadonlyMap<string, WantedObject>;
}

/** What is to become of the objects of a request. */
export interface StatePlan {
  readonly steps: readonly DeclaredStep[];
  readonly refs: ReadonlyMap<string, ObjectRef>;
}

/** Check what of a request needs no record. Throws INVALID_DECLARED_STATE with all that is wrong, or ROLE_TOO_LOW. */
export function checkState(request: StateRequest, webhooks: WebhookParts, caller: RoleHolder): CheckedState {
  const { owner, prune, takeOver } = request;
  const { objects, violations } = readObjects(request.objects, webhooks);
  const ownerless = [
    ...(prune && owner === "" ? [{ field: "prune", description: "takes an owner, whose objects are pruned" }] : []),
    ...(takeOver && owner === "" ? [{ field: "take_over", description: "takes an owner, who gets the objects" }] : []),
  ];
  const many = `are ${objects.size}, each label counted, and may be ${MOST_OBJECTS} in a call: make several calls`;
  const tooMany = objects.size > MOST_OBJECTS ? [{ field: "objects", description: many }] : [];
  refuseInvalid([...ownerless, ...tooMany, ...violations]);
  checkRoles([...objects.keys()], caller);
  return { request, objects };
}

/**
 * Plan what becomes of the objects of a request, as they are now. Throws INVALID_DECLARED_STATE for nodes that are not
 * there, TOO_MANY_DECLARED_OBJECTS, or ROLE_TOO_LOW for what would be pruned.
 *
 * @param lock takes the locks that it takes to carry the plan out; nothing when that is not to be done.
 */
export async function planState(
  db: Db,
  { request, objects }: CheckedState,
  caller: RoleHolder,
  lock: (refs: readonly ObjectRef[]) => Promise<void> = async () => {},
): Promise<StatePlan> {
  const { owner, prune, takeOver } = request;
  const names = [...objects.keys()];
  const pruner = prune ? owner : "";
  const recorded = await readDeclaredObjects(db, { names, owner: pruner, limit: MOST_PRUNED + 1 });
  const unwanted = [...recorded.keys()].filter((name) => !objects.has(name));
  if (unwanted.length > MOST_PRUNED) throw tooManyToPrune(owner);
  checkRoles(unwanted, caller);
  const refs = new Map([...names, ...unwanted].map((name) => [name, refOf(name)]));
  await lock([...refs.values()]);
  const there = await readExisting(db, refs);
  refuseInvalid(nodesMissing(objects, there));
  const wanted = new Map([...objects].map(([name, { fields }]) => [name, fields]));
  const { existing } = there;
  return { steps: planDeclared({ owner, wanted, recorded, existing, prune, takeOver }), refs };
}

/** A label waits for no node: one that registers later under this id may be another machine. */
function nodesMissing(
  objects: ReadonlyMap<string, WantedObject>,
  { nodes, computeNodes }: ExistingObjects,
): readonly FieldViolation[] {
  return [...objects].flatMap(([name, { wanted }]) => {
    const node = nodeOfRef(wanted);
    if (node === null) return [];
    if (!nodes.has(node)) return [{ field: name, description: `there is no node ${node}; declare it once it is here` }];
    if (wanted.kind === "label" || computeNodes.has(node)) return [];
    return [{ field: name, description: `node ${node} is a control-plane process; its lease alone says how it fares` }];
  });
}

function refuseInvalid(violations: readonly FieldViolation[]): void {
  if (violations.length > 0) throw refuseFields("INVALID_DECLARED_STATE", [...violations]);
}

function checkRoles(names: readonly string[], { role }: RoleHolder): void {
  const beyond = names.filter((name) => !roleSuffices(role, ROLE_OF_KIND[refOf(name).kind]));
  const [first] = beyond;
  if (first === undefined) return;
  const required = ROLE_OF_KIND[refOf(first).kind];
  throw refuse("ROLE_TOO_LOW", `${beyond.join(", ")}: takes the role ${required}, the token has ${role}`, {
    metadata: { required, role: `${role}` },
    violations: beyond.map((field) => ({ field, description: `takes the role ${ROLE_OF_KIND[refOf(field).kind]}` })),
  });
}

function tooManyToPrune(owner: string): Error {
  const message = `owner ${owner} has more than ${MOST_PRUNED} objects that are not declared any more; prune in steps`;
  return refuse("TOO_MANY_DECLARED_OBJECTS", message, { metadata: { owner, most: `${MOST_PRUNED}` } });
}
