import type { ApplyStateRequest } from "@rollcall/api/rollcall/admin/v1/declared_state_pb";
import {
  boundPlan,
  type DeclaredBounds,
  type DeclaredCost,
  type DeclaredRecord,
  type DeclaredStep,
  isDeclaredChange,
  planDeclared,
  suggestName,
} from "@rollcall/domain";
import { type FieldViolation, refuse, refuseFields } from "@rollcall/errors";
import { type Role, roleSuffices } from "@rollcall/identity";
import { type Db, findNearNames, readDeclaredObjects } from "@rollcall/store";
import type { WebhookParts } from "../webhooks/webhook-services.ts";
import { type ExistingObjects, readExisting, refOf } from "./existing-objects.ts";
import { nodeOfRef, type ObjectRef, ROLE_OF_KIND, readObjects, type WantedObject } from "./read-objects.ts";

/** The properties of the caller that planning uses. */
export interface RoleHolder {
  readonly role: Role;
  /** The caller's name in events. */
  readonly actor: string;
}

/** The request fields that PlanState and ApplyState share. */
export type StateRequest = Pick<ApplyStateRequest, "objects" | "owner" | "prune" | "takeOver"> &
  Partial<Pick<ApplyStateRequest, "confirmed">>;

/**
 * Limits on the changes in one call. They are low, because registrations of the changed nodes wait while a call runs,
 * and each fleet policy is evaluated for the whole fleet.
 */
const BOUNDS: DeclaredBounds = { nodes: 100, fleetPolicies: 20, jobs: 100, pruned: 1_000 };
const BOUND_WORDS = { nodes: "nodes", fleetPolicies: "default and group policies", jobs: "jobs" } as const;

/** Maximum number of an owner's undeclared objects that one call reads. */
const MOST_UNWANTED = 2_000;

/** Maximum number of objects in one call; each label counts. */
const MOST_OBJECTS = 2_000;

/** A request whose objects are all valid individually. */
export interface CheckedState {
  readonly request: StateRequest;
  readonly objects: ReadonlyMap<string, WantedObject>;
}

/** How the objects of a request will change. */
export interface StatePlan {
  readonly steps: readonly DeclaredStep[];
  readonly refs: ReadonlyMap<string, ObjectRef>;
  /** The stored records of these objects. */
  readonly recorded: ReadonlyMap<string, DeclaredRecord>;
  /** Whether another call is needed to prune or forget the remaining objects. */
  readonly more: boolean;
}

/**
 * Check everything in a request that needs no store. Throws INVALID_DECLARED_STATE with all problems, or ROLE_TOO_LOW.
 */
export function checkState(request: StateRequest, webhooks: WebhookParts, caller: RoleHolder): CheckedState {
  const { owner, prune, takeOver } = request;
  const { objects, violations } = readObjects(request.objects, webhooks, caller.actor);
  const ownerless = [
    ...(prune && owner === ""
      ? [{ field: "prune", description: "requires an owner; only its objects are pruned" }]
      : []),
    ...(takeOver && owner === ""
      ? [{ field: "take_over", description: "requires an owner, which takes over the objects" }]
      : []),
  ];
  const many =
    `has ${objects.size} objects, counting each label; the limit for one call is ${MOST_OBJECTS}: use ` +
    "several calls";
  const tooMany = objects.size > MOST_OBJECTS ? [{ field: "objects", description: many }] : [];
  refuseInvalid([...ownerless, ...tooMany, ...violations]);
  checkRoles([...objects.keys()], caller);
  // Refuse to prune for a viewer, who cannot change any kind of object. A viewer who declares nothing must not learn
  // from a refusal which objects an owner has.
  if (prune && !Object.values(ROLE_OF_KIND).some((needed) => roleSuffices(caller.role, needed))) {
    const message = `pruning requires the role operator or submitter; this token has ${caller.role}`;
    throw refuse("ROLE_TOO_LOW", message, { metadata: { required: "operator", role: caller.role } });
  }
  return { request, objects };
}

/**
 * Plan the changes to a request's objects from their current state. Throws INVALID_DECLARED_STATE for missing nodes,
 * TOO_MANY_DECLARED_OBJECTS, or ROLE_TOO_LOW for objects that would be pruned.
 */
export async function planState(db: Db, state: CheckedState, caller: RoleHolder): Promise<StatePlan> {
  const { request, objects } = state;
  const names = [...objects.keys()];
  const owner = request.prune ? request.owner : "";
  const read = await readDeclaredObjects(db, { names, owner, limit: MOST_UNWANTED + 1 });
  const unwanted = [...read.keys()].filter((name) => !objects.has(name));
  const looked = unwanted.slice(0, MOST_UNWANTED);
  checkRoles(looked, caller);
  const refs = new Map([...names, ...looked].map((name) => [name, refOf(name)]));
  const recorded = new Map([...read].filter(([name]) => refs.has(name)));
  const steps = await stepsFor(db, state, { refs, recorded });
  return held(request.owner, { steps, refs, recorded, more: looked.length < unwanted.length });
}

/**
 * Plan the changes again after policies and webhooks were locked. Objects that already matched are not read again,
 * because nothing happens to them. Throws the same errors as planState().
 */
export async function planAgain(db: Db, state: CheckedState, plan: StatePlan): Promise<StatePlan> {
  const changed = new Set(plan.steps.filter(isDeclaredChange).map(({ name }) => name));
  const of = <T>(all: ReadonlyMap<string, T>) => new Map([...all].filter(([name]) => changed.has(name)));
  const again = await stepsFor(db, state, { refs: of(plan.refs), recorded: of(plan.recorded) });
  const byName = new Map(again.map((step) => [step.name, step]));
  return held(state.request.owner, { ...plan, steps: plan.steps.map((step) => byName.get(step.name) ?? step) });
}

async function stepsFor(
  db: Db,
  { request, objects }: CheckedState,
  { refs, recorded }: Pick<StatePlan, "refs" | "recorded">,
): Promise<readonly DeclaredStep[]> {
  const { owner, prune, takeOver } = request;
  const asked = new Map([...objects].filter(([name]) => refs.has(name)));
  const there = await readExisting(db, refs, asked);
  refuseInvalid(await nodesMissing(db, asked, there));
  const wanted = new Map([...asked].map(([name, { fields }]) => [name, fields]));
  return planDeclared({ owner, wanted, recorded, existing: there.existing, idle: there.idle, prune, takeOver });
}

/** Limit a plan to what one call can change. Throws TOO_MANY_DECLARED_OBJECTS. */
function held(owner: string, plan: StatePlan): StatePlan {
  const bounded = boundPlan(plan.steps, (name) => costOf(plan.refs.get(name)), BOUNDS);
  if (bounded.ok) return { ...plan, steps: bounded.steps, more: plan.more || bounded.isCut };
  const most = BOUNDS[bounded.bound];
  const what = BOUND_WORDS[bounded.bound];
  const message =
    `this changes ${bounded.count} ${what}, and one call can change at most ${most}; ` +
    "apply the files in several calls without pruning first";
  throw refuse("TOO_MANY_DECLARED_OBJECTS", message, { metadata: { owner, most: `${most}` } });
}

function costOf(ref: ObjectRef | undefined): DeclaredCost {
  if (ref === undefined) return { node: null, isFleetPolicy: false, isJob: false };
  const isFleetPolicy = ref.kind === "policy" && ref.scope.kind !== "node";
  return { node: nodeOfRef(ref), isFleetPolicy, isJob: ref.kind === "job" };
}

/**
 * Report labels of nodes that do not exist. Labels do not wait for a node, because a node that registers later with
 * this id may be another machine.
 */
async function nodesMissing(
  db: Db,
  objects: ReadonlyMap<string, WantedObject>,
  { nodes, computeNodes }: ExistingObjects,
): Promise<readonly FieldViolation[]> {
  const named = new Set([...objects.values()].flatMap(({ wanted }) => nodeOfRef(wanted) ?? []));
  const near = await findNearNames(
    db,
    "node",
    [...named].filter((node) => !nodes.has(node)),
  );
  return [...objects].flatMap(([name, { wanted }]) => {
    const node = nodeOfRef(wanted);
    if (node === null) return [];
    if (!nodes.has(node)) {
      const text = `there is no node ${node}; declare it once it has registered`;
      const missing = { reason: "NODE_NOT_FOUND", message: text, metadata: {} } as const;
      return [{ field: name, description: suggestName(missing, node, near.get(node) ?? []).message }];
    }
    if (wanted.kind === "label" || computeNodes.has(node)) return [];
    return [
      { field: name, description: `node ${node} is a control-plane process; its health depends only on its lease` },
    ];
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
  throw refuse("ROLE_TOO_LOW", `${beyond.join(", ")}: requires the role ${required}, the token has ${role}`, {
    metadata: { required, role: `${role}` },
    violations: beyond.map((field) => ({ field, description: `requires the role ${ROLE_OF_KIND[refOf(field).kind]}` })),
  });
}
