import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { type Executions, ExecutionsSchema } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  DesiredState,
  ExecutionObservationSchema,
  ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";
import {
  applyExecutions,
  castOut,
  type LiveWork,
  NOTHING_DESIRED,
  planWork,
  pruneForgotten,
  type WorkPlan,
} from "./desired-work.ts";

const { RUN, STOP, FORGET } = DesiredState;
const { RUNNING } = ObservedState;
const DIGEST = new Uint8Array(32).fill(7);
const HEX = "07".repeat(32);
const SPEC = new Uint8Array([1]);

const reference = (id: string, desired: DesiredState) =>
  create(ExecutionReferenceSchema, { id, desired, specDigest: DIGEST });

function frame(generation: number, named: Record<string, DesiredState>, more: Partial<Executions> = {}): Executions {
  const references = Object.entries(named).map(([id, desired]) => reference(id, desired));
  return create(ExecutionsSchema, { logId: "log-1", generation: BigInt(generation), whole: true, references, ...more });
}

const kept = (id: string, state: ObservedState, logId = "log-1"): readonly [string, LiveWork] => [
  id,
  { observation: create(ExecutionObservationSchema, { id, state }), logId },
];

const namesOf = ({ references }: { readonly references: ReadonlyMap<string, { readonly desired: DesiredState }> }) =>
  Object.fromEntries([...references].map(([id, { desired }]) => [id, desired]));

describe("applyExecutions()", () => {
  it("should apply a complete list when its last part has arrived, and changes after it", () => {
    const first = applyExecutions(NOTHING_DESIRED, frame(3, { a: RUN }, { more: true }));
    expect(namesOf(first)).toEqual({});
    const whole = applyExecutions(first, frame(3, { b: RUN }));
    expect(namesOf(whole)).toEqual({ a: RUN, b: RUN });
    const changed = applyExecutions(whole, frame(4, { a: STOP }, { whole: false }));
    expect(namesOf(changed)).toEqual({ a: STOP, b: RUN });
    expect(changed.generation).toBe(4n);
    expect(namesOf(applyExecutions(changed, frame(5, { c: RUN })))).toEqual({ c: RUN });
  });

  it("should ignore older generations, and changes of a history without a complete list", () => {
    const known = applyExecutions(NOTHING_DESIRED, frame(3, { a: RUN }));
    expect(applyExecutions(known, frame(2, { a: STOP }))).toBe(known);
    expect(applyExecutions(known, frame(9, { a: STOP }, { whole: false, logId: "log-2" }))).toBe(known);
  });
});

describe("castOut()", () => {
  it("should stop the history's executions, start nothing new, and leave those of other histories", () => {
    const desired = applyExecutions(NOTHING_DESIRED, frame(4, { here: RUN, waits: RUN }));
    const machine = new Map([kept("here", RUNNING), kept("unnamed", RUNNING), kept("other", RUNNING, "log-2")]);
    const after = castOut(desired, machine, "log-1");
    expect(namesOf(after)).toEqual({ here: STOP, unnamed: STOP });
    // A history that readmits the node sends a new list.
    expect(namesOf(applyExecutions(after, frame(4, { here: RUN })))).toEqual({ here: RUN });
  });

  it("should stop the history's executions before it has sent anything, and leave the rest", () => {
    const machine = new Map([kept("here", RUNNING), kept("other", RUNNING, "log-2")]);
    const after = castOut(NOTHING_DESIRED, machine, "log-1");
    expect([after.logId, namesOf(after)]).toEqual(["log-1", { here: STOP }]);
    expect(namesOf(applyExecutions(after, frame(1, { next: RUN })))).toEqual({ next: RUN });
  });
});

describe("planWork()", () => {
  const plan = (
    named: Record<string, DesiredState>,
    there: readonly (readonly [string, LiveWork])[],
    specs: ReadonlyMap<string, Uint8Array | null> = new Map([[HEX, SPEC]]),
    met: readonly string[] = [],
  ) => {
    const desired = applyExecutions(NOTHING_DESIRED, frame(1, named));
    const { actions, wantedSpecs } = planWork(desired, { kept: new Map(there), met: new Set(met), specs });
    return wordsOf(actions, wantedSpecs);
  };

  const wordsOf = (actions: WorkPlan["actions"], wantedSpecs: readonly string[]) => {
    const words = actions.map((action) => {
      if (action.kind === "refuse" && action.isLost) return `lost ${action.reference.id}`;
      return "ids" in action ? `${action.kind} ${action.ids.join()}` : `${action.kind} ${action.reference.id}`;
    });
    return [...words, ...wantedSpecs.map(() => "want")];
  };

  it.each<[string, readonly string[], readonly string[]]>([
    ["start what is not there", plan({ a: RUN }, []), ["start a"]],
    ["want a spec first", plan({ a: RUN, b: RUN }, [], new Map()), ["want"]],
    ["refuse what no longer has a spec", plan({ a: RUN }, [], new Map([[HEX, null]])), ["refuse a"]],
    ["leave what runs", plan({ a: RUN }, [kept("a", ObservedState.RUNNING)]), []],
    ["never start again what has ended", plan({ a: RUN }, [kept("a", ObservedState.ENDED)]), []],
    ["note who knows it now", plan({ a: RUN }, [kept("a", ObservedState.RUNNING, "log-0")]), ["bind a"]],
    ["stop what runs", plan({ a: STOP }, [kept("a", ObservedState.READY)]), ["stop a"]],
    ["leave what has ended", plan({ a: STOP }, [kept("a", ObservedState.ENDED)]), []],
    ["record the stop of what is not there", plan({ a: STOP }, []), ["stop a"]],
    ["forget what has ended", plan({ a: FORGET, b: FORGET }, [kept("a", ObservedState.ENDED)]), ["forget a"]],
    ["not forget what runs", plan({ a: FORGET }, [kept("a", ObservedState.RUNNING)]), []],
    ["leave what is not named", plan({}, [kept("a", ObservedState.RUNNING)]), []],
    ["not start again what it had and lost", plan({ a: RUN }, [], undefined, ["a"]), ["lost a"]],
    ["not call a stop what it had and lost", plan({ a: STOP }, [], undefined, ["a"]), ["lost a"]],
    ["stop nothing by a history that has not heard of it", plan({ a: STOP }, [kept("a", RUNNING, "log-0")]), []],
  ])("should %s", (_, planned, expected) => {
    expect(planned).toEqual(expected);
  });
});

describe("planWork() with executions that were reported", () => {
  const reported = { references: [create(ExecutionReferenceSchema, { ...reference("a", RUN), reported: true })] };

  it("should not start executions that were reported and are missing, with or without a spec", () => {
    const desired = applyExecutions(NOTHING_DESIRED, frame(1, {}, reported));
    const machine = { kept: new Map(), met: new Set<string>(), specs: new Map() };
    expect(planWork(desired, machine)).toMatchObject({
      actions: [{ kind: "refuse", reference: { id: "a" }, isLost: true }],
      wantedSpecs: [],
    });
  });

  it("should do nothing once that is recorded", () => {
    const desired = applyExecutions(NOTHING_DESIRED, frame(1, {}, reported));
    const machine = { kept: new Map([kept("a", ObservedState.ENDED)]), met: new Set(["a"]), specs: new Map() };
    expect(planWork(desired, machine)).toEqual({ actions: [], wantedSpecs: [] });
  });
});

describe("pruneForgotten()", () => {
  it("should drop forgotten executions", () => {
    const desired = applyExecutions(NOTHING_DESIRED, frame(1, { a: FORGET, b: FORGET, c: RUN }));
    expect(namesOf(pruneForgotten(desired, new Map([kept("b", ObservedState.ENDED)])))).toEqual({ b: FORGET, c: RUN });
  });
});
