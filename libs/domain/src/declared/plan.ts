/** The fields of an object, each as JSON text. Two objects are equal if their fields are equal. */
export type DeclaredFields = Readonly<Record<string, string>>;

/** The store's record of an applied object. */
export interface DeclaredRecord {
  /** The owner who applied the object last. */
  readonly owner: string;
  /** The applied fields. */
  readonly fields: DeclaredFields;
}

/** The input of a plan. Keys are names of objects, such as "webhook/ops". */
export interface DeclaredInput {
  /** The owner who applies the objects; empty for a caller without an owner, for whom no records are kept. */
  readonly owner: string;
  readonly wanted: ReadonlyMap<string, DeclaredFields>;
  readonly recorded: ReadonlyMap<string, DeclaredRecord>;
  /** Current objects, keyed by name; missing objects are absent. */
  readonly existing: ReadonlyMap<string, DeclaredFields>;
  /** Wanted objects that exist but do not run: stopped objects, which are absent from `existing`, and ended objects. */
  readonly idle: ReadonlyMap<string, DeclaredFields>;
  /** Whether to delete objects that the owner applied before and no longer wants. */
  readonly prune: boolean;
  /** Whether to take over objects of other owners instead of refusing. */
  readonly takeOver: boolean;
}

/**
 * What will happen to an object: `adopt` only records its owner; `conflict` means that the object belongs to
 * another owner; `forget` deletes the record of an object that no longer exists; `start` runs an idle object again.
 */
export type DeclaredAction = "create" | "update" | "start" | "unchanged" | "adopt" | "conflict" | "prune" | "forget";

/** A field whose current value differs from its wanted value. */
export interface FieldDifference {
  readonly field: string;
  /** The current value as JSON; null if the object does not have the field. */
  readonly before: string | null;
  /** The wanted value as JSON; null if the wanted object does not have the field. */
  readonly after: string | null;
  /** Whether the field has changed since the owner applied it. */
  readonly isEdited: boolean;
}

/** What will happen to one object. */
export interface DeclaredStep {
  readonly name: string;
  readonly action: DeclaredAction;
  /** Ordered by field name; empty if the object itself does not change. */
  readonly differences: readonly FieldDifference[];
  /** The previous owner; empty for none. */
  readonly formerOwner: string;
  /** The wanted fields; null if the object is deleted. */
  readonly fields: DeclaredFields | null;
}

/**
 * Decide what happens to every object that is wanted or that the owner applied before. Steps are ordered by name,
 * whatever the order of the input.
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

/** Whether a step changes anything, even if only the recorded owner. */
export function isDeclaredChange({ action }: Pick<DeclaredStep, "action">): boolean {
  return action !== "unchanged";
}

/**
 * The changes that a plan without conflicts makes to the records; null deletes a record. Unchanged records are
 * absent.
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
  const idle = input.idle.get(name);
  const before = existing ?? idle;
  const formerOwner = record?.owner ?? "";
  const lastApplied = formerOwner === owner ? record?.fields : undefined;
  const differences = before === undefined ? [] : differencesOf(before, fields, lastApplied);
  const step = { name, differences, formerOwner, fields };
  const isSame = existing !== undefined && differences.length === 0;
  // Accept an unchanged object from a caller without an owner even if the object belongs to an owner, because this
  // has no effect.
  if (isSame && owner === "") return { ...step, action: "unchanged" };
  if (formerOwner !== "" && formerOwner !== owner && !(takeOver && owner !== ""))
    return { ...step, action: "conflict" };
  if (before === undefined) return { ...step, action: "create" };
  if (!isSame) return { ...step, action: idle === undefined ? "update" : "start" };
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

/** Check own properties only: users choose the field names, and a field can be called "constructor". */
function fieldOf(fields: DeclaredFields, field: string): string | null {
  return Object.hasOwn(fields, field) ? (fields[field] ?? null) : null;
}

function compareNames(left: string, right: string): number {
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
