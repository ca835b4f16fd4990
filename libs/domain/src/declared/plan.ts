/** What an object says, a JSON text a field: two objects are the same when their fields are. */
export type DeclaredFields = Readonly<Record<string, string>>;

/** What the record remembers of an object that was applied. */
export interface DeclaredRecord {
  /** Who applied it last. */
  readonly owner: string;
  /** What was applied. */
  readonly fields: DeclaredFields;
}

/** What a plan is made of. Keys are names of objects, such as "webhook/ops". */
export interface DeclaredInput {
  /** Who applies; empty for a caller that owns nothing, and of which nothing is recorded. */
  readonly owner: string;
  readonly wanted: ReadonlyMap<string, DeclaredFields>;
  readonly recorded: ReadonlyMap<string, DeclaredRecord>;
  /** Objects as they are now; one that is not there is not in it. */
  readonly existing: ReadonlyMap<string, DeclaredFields>;
  /** Whether what the owner applied before, and does not want any more, goes. */
  readonly prune: boolean;
  /** Whether objects of other owners are taken over instead of refused. */
  readonly takeOver: boolean;
}

/**
 * What will happen to an object: `adopt` records an owner and changes nothing else; `conflict` means that another
 * owner's object is wanted; `forget` drops the record of an object that is gone already.
 */
export type DeclaredAction = "create" | "update" | "unchanged" | "adopt" | "conflict" | "prune" | "forget";

/** A field that is not as it is wanted. */
export interface FieldDifference {
  readonly field: string;
  /** JSON; null when the object does not have it. */
  readonly before: string | null;
  /** JSON; null when the object is not to have it. */
  readonly after: string | null;
  /** Whether it was changed since the owner applied it, by other means. */
  readonly isEdited: boolean;
}

/** What will happen to one object. */
export interface DeclaredStep {
  readonly name: string;
  readonly action: DeclaredAction;
  /** In order of the fields' names; empty when nothing of the object itself changes. */
  readonly differences: readonly FieldDifference[];
  /** Who owns it before; empty for none. */
  readonly formerOwner: string;
  /** What it is to be; null when it goes. */
  readonly fields: DeclaredFields | null;
}

/**
 * Decide what happens to every object that is wanted, or that the owner applied before: in order of their names,
 * whatever the order in which they are given.
 */
export function planDeclared(input: DeclaredInput): readonly DeclaredStep[] {
  const { owner, wanted, recorded, prune } = input;
  const steps = [...wanted].map(([name, fields]) => planWanted(input, name, fields));
  if (prune && owner !== "") {
    for (const [name, record] of recorded) {
      if (record.owner === owner && !wanted.has(name)) steps.push(planUnwanted(input, name, record));
    }
  }
  return steps.sort((left, right) => compareNames(left.name, right.name));
}

/** Whether a step changes anything, even if only the record of an owner. */
export function isDeclaredChange({ action }: Pick<DeclaredStep, "action">): boolean {
  return action !== "unchanged";
}

/**
 * What of the record of owners a plan without conflicts changes: null for what it forgets. What is remembered already
 * is not in it.
 */
export function recordAfter(
  { owner, recorded }: Pick<DeclaredInput, "owner" | "recorded">,
  steps: readonly DeclaredStep[],
): ReadonlyMap<string, DeclaredRecord | null> {
  const after = new Map<string, DeclaredRecord | null>();
  if (owner === "") return after;
  for (const { name, fields } of steps) {
    const record = recorded.get(name);
    if (fields === null) after.set(name, null);
    else if (record?.owner !== owner || differencesOf(record.fields, fields, undefined).length > 0) {
      after.set(name, { owner, fields });
    }
  }
  return after;
}

function planWanted(input: DeclaredInput, name: string, fields: DeclaredFields): DeclaredStep {
  const { owner, takeOver } = input;
  const record = input.recorded.get(name);
  const existing = input.existing.get(name);
  const formerOwner = record?.owner ?? "";
  const lastApplied = formerOwner === owner ? record?.fields : undefined;
  const differences = existing === undefined ? [] : differencesOf(existing, fields, lastApplied);
  const step = { name, differences, formerOwner, fields };
  const isSame = existing !== undefined && differences.length === 0;
  // A caller that records no owner may state again what is already so: it has no effect.
  if (isSame && owner === "") return { ...step, action: "unchanged" };
  if (formerOwner !== "" && formerOwner !== owner && !(takeOver && owner !== ""))
    return { ...step, action: "conflict" };
  if (existing === undefined) return { ...step, action: "create" };
  if (!isSame) return { ...step, action: "update" };
  return { ...step, action: formerOwner === owner ? "unchanged" : "adopt" };
}

function planUnwanted({ existing }: DeclaredInput, name: string, { owner, fields }: DeclaredRecord): DeclaredStep {
  const now = existing.get(name);
  const step = { name, formerOwner: owner, fields: null };
  if (now === undefined) return { ...step, action: "forget", differences: [] };
  return { ...step, action: "prune", differences: differencesOf(now, {}, fields) };
}

function differencesOf(
  before: DeclaredFields,
  after: DeclaredFields,
  lastApplied: DeclaredFields | undefined,
): readonly FieldDifference[] {
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(compareNames);
  return fields.flatMap((field) => {
    const [was, is] = [fieldOf(before, field), fieldOf(after, field)];
    if (was === is) return [];
    const isEdited = lastApplied !== undefined && fieldOf(lastApplied, field) !== was;
    return [{ field, before: was, after: is, isEdited }];
  });
}

/** Fields are named by users: one may be called "constructor". */
function fieldOf(fields: DeclaredFields, field: string): string | null {
  return Object.hasOwn(fields, field) ? (fields[field] ?? null) : null;
}

function compareNames(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
