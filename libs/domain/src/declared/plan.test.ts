import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type DeclaredAction,
  type DeclaredFields,
  type DeclaredInput,
  type DeclaredRecord,
  type DeclaredStep,
  isDeclaredChange,
  planDeclared,
  recordAfter,
} from "./plan.ts";

const A = { url: '"a"' };
const B = { url: '"b"' };

/** Plan the changes to one object named x. */
function planX({
  owner = "team",
  wanted,
  record,
  existing,
  idle,
  ...flags
}: {
  readonly owner?: string;
  readonly wanted?: DeclaredFields;
  readonly record?: DeclaredRecord;
  readonly existing?: DeclaredFields;
  readonly idle?: DeclaredFields;
  readonly prune?: boolean;
  readonly takeOver?: boolean;
}): readonly DeclaredStep[] {
  const mapOf = <T>(value: T | undefined) => new Map(value === undefined ? [] : [["x", value]]);
  const maps = { wanted: mapOf(wanted), recorded: mapOf(record), existing: mapOf(existing), idle: mapOf(idle) };
  return planDeclared({ owner, ...maps, prune: false, takeOver: false, ...flags });
}

describe("planDeclared()", () => {
  const mine = { owner: "team", fields: A };
  const theirs = { owner: "other", fields: A };

  it.each<[string, Parameters<typeof planX>[0], DeclaredAction | null]>([
    ["create what is not there", { wanted: A }, "create"],
    ["create again what was deleted by hand", { wanted: A, record: mine }, "create"],
    ["leave what is as wanted", { wanted: A, record: mine, existing: A }, "unchanged"],
    ["overwrite what was edited by hand", { wanted: A, record: mine, existing: B }, "update"],
    ["change what is wanted differently now", { wanted: B, record: mine, existing: A }, "update"],
    ["start what was stopped", { wanted: A, record: mine, idle: A }, "start"],
    ["start what was stopped, with other fields", { wanted: B, record: mine, idle: A }, "start"],
    ["start what has ended and is wanted differently", { wanted: B, record: mine, existing: A, idle: A }, "start"],
    ["leave what has ended as wanted", { wanted: A, record: mine, existing: A, idle: A }, "unchanged"],
    ["refuse another owner's stopped object", { wanted: A, record: theirs, idle: A }, "conflict"],
    ["adopt what is so already and has no owner", { wanted: A, existing: A }, "adopt"],
    ["change what has no owner", { wanted: A, existing: B }, "update"],
    ["refuse another owner's object", { wanted: B, record: theirs, existing: A }, "conflict"],
    ["refuse another owner's object that is the same", { wanted: A, record: theirs, existing: A }, "conflict"],
    ["refuse another owner's object that is gone", { wanted: A, record: theirs }, "conflict"],
    ["take it over", { wanted: B, record: theirs, existing: A, takeOver: true }, "update"],
    ["take over what is the same", { wanted: A, record: theirs, existing: A, takeOver: true }, "adopt"],
    ["take over what is gone", { wanted: A, record: theirs, takeOver: true }, "create"],
    ["prune what the owner applied", { record: mine, existing: A, prune: true }, "prune"],
    ["prune what was edited since", { record: mine, existing: B, prune: true }, "prune"],
    ["forget what is gone", { record: mine, prune: true }, "forget"],
    ["keep what is not wanted without --prune", { record: mine, existing: A }, null],
    ["never prune another owner's object", { record: theirs, existing: A, prune: true, takeOver: true }, null],
    ["never prune what has no owner", { existing: A, prune: true }, null],
    ["without an owner change what has none", { owner: "", wanted: A, existing: B }, "update"],
    ["without an owner leave what is as wanted", { owner: "", wanted: A, record: theirs, existing: A }, "unchanged"],
    [
      "without an owner never change another's",
      { owner: "", wanted: B, record: theirs, existing: A, takeOver: true },
      "conflict",
    ],
    ["without an owner prune nothing", { owner: "", record: mine, existing: A, prune: true }, null],
  ])("should %s", (_, given, action) => {
    expect(planX(given).map((step) => step.action)).toEqual(action === null ? [] : [action]);
  });

  it("should report which fields of a stopped object differ", () => {
    const [step] = planX({ wanted: { same: "1", other: "2" }, record: mine, idle: { same: "1", other: "1" } });
    expect(step?.differences).toEqual([{ field: "other", before: "1", after: "2", isEdited: true }]);
  });

  it("should report which fields differ, and which of them were edited by hand", () => {
    const [step] = planX({
      wanted: { same: "1", mine: "2", added: "3" },
      record: { owner: "team", fields: { same: "1", mine: "1" } },
      existing: { same: "1", mine: "1", constructor: "9" },
    });
    expect(step?.differences).toEqual([
      { field: "added", before: null, after: "3", isEdited: false },
      { field: "constructor", before: "9", after: null, isEdited: true },
      { field: "mine", before: "1", after: "2", isEdited: false },
    ]);
  });
});

const NAMES = ["a", "b", "c", "d", "e"];
const fields = fc.dictionary(fc.constantFrom("f", "g", "constructor"), fc.constantFrom("1", "2"), {
  noNullPrototype: true,
});
const mapOf = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<ReadonlyMap<string, T>> =>
  fc.uniqueArray(fc.tuple(fc.constantFrom(...NAMES), values), { selector: ([name]) => name }).map((it) => new Map(it));
const owners = fc.constantFrom("team", "other");
const inputs: fc.Arbitrary<DeclaredInput> = fc.record({
  owner: fc.constantFrom("", "team", "other"),
  wanted: mapOf(fields),
  recorded: mapOf(fc.record({ owner: owners, fields })),
  existing: mapOf(fields),
  idle: mapOf(fields),
  prune: fc.boolean(),
  takeOver: fc.boolean(),
});

/** Return the state after applying a plan without conflicts. */
function applied(input: DeclaredInput, steps: readonly DeclaredStep[]): DeclaredInput {
  const existing = new Map(input.existing);
  const idle = new Map(input.idle);
  for (const { name, action, fields: after } of steps) {
    if (action === "start") idle.delete(name);
    if (after === null) existing.delete(name);
    else existing.set(name, after);
  }
  const recorded = new Map(input.recorded);
  for (const [name, record] of recordAfter(input, steps)) {
    if (record === null) recorded.delete(name);
    else recorded.set(name, record);
  }
  return { ...input, existing, idle, recorded };
}

const hasConflict = (steps: readonly DeclaredStep[]) => steps.some(({ action }) => action === "conflict");

describe("any plan", () => {
  it("should leave nothing to do once it is applied", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const steps = planDeclared(input);
        fc.pre(!hasConflict(steps));
        expect(planDeclared(applied(input, steps)).filter(isDeclaredChange)).toEqual([]);
      }),
    );
  });

  it("should leave nothing to remember once it is applied", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const steps = planDeclared(input);
        fc.pre(!hasConflict(steps));
        const after = applied(input, steps);
        expect(recordAfter(after, planDeclared(after))).toEqual(new Map());
      }),
    );
  });

  it("should not depend on the order of its input", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const reversed = <T>(map: ReadonlyMap<string, T>) => new Map([...map].reverse());
        const { wanted, recorded, existing, idle } = input;
        const maps = { wanted: reversed(wanted), recorded: reversed(recorded) };
        const now = { existing: reversed(existing), idle: reversed(idle) };
        expect(planDeclared({ ...input, ...maps, ...now })).toEqual(planDeclared(input));
      }),
    );
  });

  it("should prune only objects that the owner applied and no longer wants", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        for (const { name, action, fields: after } of planDeclared(input)) {
          if (after !== null) continue;
          expect(["prune", "forget"]).toContain(action);
          expect(input.owner).not.toBe("");
          expect(input.recorded.get(name)?.owner).toBe(input.owner);
          expect(input.wanted.has(name)).toBe(false);
        }
      }),
    );
  });

  it("should change nothing that is exported and applied without an owner", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const steps = planDeclared({ ...input, owner: "", wanted: input.existing });
        expect(steps.filter(isDeclaredChange)).toEqual([]);
        expect(steps).toHaveLength(input.existing.size);
      }),
    );
  });

  it("should change no object that its owner exports, and prune no existing one", () => {
    fc.assert(
      fc.property(inputs, owners, (input, owner) => {
        const own = [...input.existing].filter(([name]) => input.recorded.get(name)?.owner === owner);
        const steps = planDeclared({ ...input, owner, wanted: new Map(own), prune: true });
        expect(steps.filter(({ action }) => action !== "unchanged" && action !== "forget")).toEqual([]);
      }),
    );
  });
});
