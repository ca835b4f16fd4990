import { create } from "@bufbuild/protobuf";
import type { Executions } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  DesiredState,
  type ExecutionObservation,
  type ExecutionReference,
  ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";

/** What the control plane wants of this node. */
export interface DesiredWork {
  /** The history of the record that said so; empty before the first list. */
  readonly logId: string;
  readonly generation: bigint;
  readonly references: ReadonlyMap<string, ExecutionReference>;
  /** The parts of a whole list that have come so far; null when none is under way. */
  readonly partial: ReadonlyMap<string, ExecutionReference> | null;
}

/** An execution that the machine has. */
export interface KeptWork {
  readonly observation: ExecutionObservation;
  /** The history of the record that knows it. */
  readonly logId: string;
}

/** What has to be done for the machine to run what is wanted. */
export type WorkAction =
  | { readonly kind: "start"; readonly reference: ExecutionReference; readonly spec: Uint8Array }
  | { readonly kind: "stop"; readonly reference: ExecutionReference }
  | {
      readonly kind: "refuse";
      readonly reference: ExecutionReference;
      readonly message: string;
      /** Whether it was started here before. */
      readonly isLost: boolean;
    }
  | { readonly kind: "forget"; readonly ids: readonly string[] }
  | { readonly kind: "bind"; readonly ids: readonly string[] };

/** Those actions, and the specs that are missing, in hexadecimal digits. */
export interface WorkPlan {
  readonly actions: readonly WorkAction[];
  readonly wantedSpecs: readonly string[];
}

/** Nothing was said yet. */
export const NOTHING_DESIRED: DesiredWork = { logId: "", generation: 0n, references: new Map(), partial: null };

/** A node keeps no more than this of what it is told, whatever it is told. */
const MOST_REFERENCES = 5_000;

/** Take over a frame of Executions. An older generation of the same history changes nothing. */
export function applyExecutions(desired: DesiredWork, frame: Executions): DesiredWork {
  const isSameLog = frame.logId === desired.logId;
  if (isSameLog && frame.generation < desired.generation) return desired;
  const named = frame.references.map((one) => [one.id, one] as const);
  if (!frame.whole) {
    // Of a history whose whole list has not come, a change says too little.
    if (!isSameLog) return desired;
    const references = bounded([...desired.references, ...named]);
    return { ...desired, references, generation: frame.more ? desired.generation : frame.generation };
  }
  const partial = bounded([...(desired.partial ?? []), ...named]);
  if (frame.more) return { ...desired, partial };
  return { logId: frame.logId, generation: frame.generation, references: partial, partial: null };
}

/** A session has ended: parts of a list that it sent are worth nothing. */
export function dropPartial(desired: DesiredWork): DesiredWork {
  return { ...desired, partial: null };
}

/**
 * The node was rejected, banned or deleted by a history: all that runs by it is to stop, and nothing more is started.
 * What another history knows goes on.
 */
export function castOut(desired: DesiredWork, kept: ReadonlyMap<string, KeptWork>, by: string): DesiredWork {
  const stopped = [...kept].filter(([, { logId }]) => logId === by);
  const references = new Map(
    stopped.map(([id]) => [id, create(ExecutionReferenceSchema, { id, desired: DesiredState.STOP })]),
  );
  return { logId: by, generation: by === desired.logId ? desired.generation : 0n, references, partial: null };
}

/** Let go of executions that are to be forgotten, and have been. */
export function pruneForgotten(desired: DesiredWork, kept: ReadonlyMap<string, KeptWork>): DesiredWork {
  const isDone = ({ id, desired: wanted }: ExecutionReference): boolean => {
    return wanted === DesiredState.FORGET && !kept.has(id);
  };
  const left = [...desired.references].filter(([, reference]) => !isDone(reference));
  return left.length === desired.references.size ? desired : { ...desired, references: new Map(left) };
}

/** What the machine has and had. */
export interface MachineWork {
  readonly kept: ReadonlyMap<string, KeptWork>;
  /** Executions that it has or had, and that no history has let it forget. */
  readonly met: ReadonlySet<string>;
  /** Specs by their digests; null for one that the record no longer has. */
  readonly specs: ReadonlyMap<string, Uint8Array | null>;
}

/**
 * Decide what to do. What no list names goes on. A history that was restored stops nothing that runs by another one
 * until it has heard of that, which is when the machine has bound it. What was here before, as the machine or the
 * record remembers, and is not here now, was lost: it is never started a second time.
 */
export function planWork({ logId, references }: DesiredWork, { kept, met, specs }: MachineWork): WorkPlan {
  const actions: WorkAction[] = [];
  const forget: string[] = [];
  const bind: string[] = [];
  const wanted = new Set<string>();
  for (const reference of references.values()) {
    const { id, desired } = reference;
    const one = kept.get(id);
    const isEnded = one?.observation.state === ObservedState.ENDED;
    if (one === undefined && desired !== DesiredState.FORGET && (reference.reported || met.has(id))) {
      actions.push({ kind: "refuse", reference, message: LOST, isLost: true });
      continue;
    }
    switch (desired) {
      case DesiredState.RUN: {
        if (one !== undefined) {
          if (one.logId !== logId) bind.push(id);
          break;
        }
        const digest = hexOf(reference.specDigest);
        const spec = specs.get(digest);
        if (spec === undefined) wanted.add(digest);
        else if (spec === null) actions.push({ kind: "refuse", reference, message: NO_SPEC, isLost: false });
        else actions.push({ kind: "start", reference, spec });
        break;
      }
      case DesiredState.STOP:
        if (one === undefined || (!isEnded && one.logId === logId)) actions.push({ kind: "stop", reference });
        break;
      case DesiredState.FORGET:
        if (isEnded && one?.logId === logId) forget.push(id);
        break;
      // Of a newer server.
      default:
        break;
    }
  }
  if (forget.length > 0) actions.push({ kind: "forget", ids: forget });
  if (bind.length > 0) actions.push({ kind: "bind", ids: bind });
  return { actions, wantedSpecs: [...wanted].filter((digest) => digest.length === SPEC_DIGEST_DIGITS) };
}

const LOST = "its machine has lost it: it was started before, and nothing is known of it there";
const NO_SPEC = "the record has no such spec";

/** The digests of specs that are still of use. */
export function usefulSpecs({ references }: DesiredWork): ReadonlySet<string> {
  return new Set([...references.values()].map(({ specDigest }) => hexOf(specDigest)));
}

const SPEC_DIGEST_DIGITS = 64;

/** Hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function bounded(entries: readonly (readonly [string, ExecutionReference])[]): ReadonlyMap<string, ExecutionReference> {
  return new Map(entries.slice(-MOST_REFERENCES));
}
