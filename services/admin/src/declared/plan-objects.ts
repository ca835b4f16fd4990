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

/** A caller, as far as it matters here. */
export interface RoleHolder {
  readonly role: Role;
  /** As events name it. */
  readonly actor: string;
}

/** What both methods are asked for. */
export type StateRequest = Pick<ApplyStateRequest, "objects" | "owner" | "prune" | "takeOver"> &
  Partial<Pick<ApplyStateRequest, "confirmed">>;

/** What one call changes at most: registrations of its nodes wait, and each policy looks at the whole fleet. */
const BOUNDS: DeclaredBounds = { nodes: 100, fleetPolicies: 20, jobs: 100, pruned: 1_000 };
const BOUND_WORDS = { nodes: "nodes", fleetPolicies: "default and group policies", jobs: "jobs" } as const;

/** Objects of an owner, beside those that are declared, that one call looks at. */
const MOST_UNWANTED = 2_000;

/** Objects that one call declares, each label by itself. */
const MOST_OBJECTS = 2_000;

/** A request whose objects are right by themselves. */
export interface CheckedState {
  readonly request: StateRequest;
  readonly objects: ReadonlyMap<string, WantedObject>;
}

/** What will happen to the objects of a request. */
export interface StatePlan {
  readonly steps: readonly DeclaredStep[];
  readonly refs: ReadonlyMap<string, ObjectRef>;
  /** What is remembered of them. */
  readonly recorded: ReadonlyMap<string, DeclaredRecord>;
  /** Whether more is to be pruned, or forgotten, by another call. */
  readonly more: boolean;
}

/** Check what of a request needs no record. Throws INVALID_DECLARED_STATE with all that is wrong, or ROLE_TOO_LOW. */
export function checkState(request: StateRequest, webhooks: WebhookParts, caller: RoleHolder): CheckedState {
  const { owner, prune, takeOver } = request;
  const { objects, violations } = readObjects(request.objects, webhooks, caller.actor);
  const ownerless = [
    ...(prune && owner === "" ? [{ field: "prune", description: "takes an owner, whose objects are pruned" }] : []),
    ...(takeOver && owner === "" ? [{ field: "take_over", description: "takes an owner, who gets the objects" }] : []),
  ];
  const many = `are ${objects.size}, each label counted, and may be ${MOST_OBJECTS} in a call: make several calls`;
  const tooMany = objects.size > MOST_OBJECTS ? [{ field: "objects", description: many }] : [];
  refuseInvalid([...ownerless, ...tooMany, ...violations]);
  checkRoles([...objects.keys()], caller);
  // No kind is a viewer's: a caller that declares nothing may neither prune, nor learn by a refusal what an owner has.
  if (prune && !Object.values(ROLE_OF_KIND).some((needed) => roleSuffices(caller.role, needed))) {
    const message = `to prune takes the role operator or submitter, the token has ${caller.role}`;
    throw refuse("ROLE_TOO_LOW", message, { metadata: { required: "operator", role: caller.role } });
  }
  return { request, objects };
}

/**
 * Plan what happens to the objects of a request, as they are now. Throws INVALID_DECLARED_STATE for nodes that are not
 * there, TOO_MANY_DECLARED_OBJECTS, or ROLE_TOO_LOW for what would be pruned.
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
 * Plan again what a plan changes, now that policies and webhooks are locked. What was as declared before is not looked
 * at again: nothing is done to it. Throws as planState() does.
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
  return planDeclared({ owner, wanted, recorded, existing: there.existing, prune, takeOver });
}

/** A plan within what one call may change. Throws TOO_MANY_DECLARED_OBJECTS. */
function held(owner: string, plan: StatePlan): StatePlan {
  const bounded = boundPlan(plan.steps, (name) => costOf(plan.refs.get(name)), BOUNDS);
  if (bounded.ok) return { ...plan, steps: bounded.steps, more: plan.more || bounded.isCut };
  const most = BOUNDS[bounded.bound];
  const what = BOUND_WORDS[bounded.bound];
  const message =
    `this changes ${bounded.count} ${what}, and one call changes at most ${most}: ` +
    "apply the files in several calls without pruning first";
  throw refuse("TOO_MANY_DECLARED_OBJECTS", message, { metadata: { owner, most: `${most}` } });
}

function costOf(ref: ObjectRef | undefined): DeclaredCost {
  if (ref === undefined) return { node: null, isFleetPolicy: false, isJob: false };
  const isFleetPolicy = ref.kind === "policy" && ref.scope.kind !== "node";
  return { node: nodeOfRef(ref), isFleetPolicy, isJob: ref.kind === "job" };
}

/** A label waits for no node: one that registers later under this id may be another machine. */
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
      const text = `there is no node ${node}; declare it once it is here`;
      const missing = { reason: "NODE_NOT_FOUND", message: text, metadata: {} } as const;
      return [{ field: name, description: suggestName(missing, node, near.get(node) ?? []).message }];
    }
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
