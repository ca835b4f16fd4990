import { create } from "@bufbuild/protobuf";
import type { Executions } from "@rollcall/api/rollcall/health/v1/health_pb";
import {
  DesiredState,
  type ExecutionObservation,
  type ExecutionReference,
  ExecutionReferenceSchema,
  ObservedState,
} from "@rollcall/api/rollcall/work/v1/work_pb";

/** The executions that should run on this node, according to the control plane. */
export interface DesiredWork {
  /** The store history that the list comes from; empty before the first list. */
  readonly logId: string;
  readonly generation: bigint;
  readonly references: ReadonlyMap<string, ExecutionReference>;
  /** The parts of a complete list received so far; null if none is in progress. */
  readonly partial: ReadonlyMap<string, ExecutionReference> | null;
}

/** An execution on this machine. */
export interface LiveWork {
  readonly observation: ExecutionObservation;
  /** The store history that knows the execution. */
  readonly logId: string;
}

/** An action that brings the machine closer to the desired state. */
export type WorkAction =
  | { readonly kind: "start"; readonly reference: ExecutionReference; readonly spec: Uint8Array }
  | { readonly kind: "stop"; readonly reference: ExecutionReference }
  | {
      readonly kind: "refuse";
      readonly reference: ExecutionReference;
      readonly message: string;
      /** Whether the execution was started on this machine before, and is lost. */
      readonly isLost: boolean;
    }
  | { readonly kind: "forget"; readonly ids: readonly string[] }
  | { readonly kind: "bind"; readonly ids: readonly string[] };

/** The actions, and the digests of missing specs in hexadecimal. */
export interface WorkPlan {
  readonly actions: readonly WorkAction[];
  readonly wantedSpecs: readonly string[];
}

/** The state before the first list. */
export const NOTHING_DESIRED: DesiredWork = { logId: "", generation: 0n, references: new Map(), partial: null };

/** The maximum number of references that a node keeps, however many it receives. */
const MOST_REFERENCES = 5_000;

/** Apply an Executions frame. An older generation of the same history changes nothing. */
export function applyExecutions(desired: DesiredWork, frame: Executions): DesiredWork {
  const isSameLog = frame.logId === desired.logId;
  if (isSameLog && frame.generation < desired.generation) return desired;
  const named = frame.references.map((one) => [one.id, one] as const);
  if (!frame.whole) {
    // Ignore a change of another history, because it is useless without the complete list of that history.
    if (!isSameLog) return desired;
    const references = bounded([...desired.references, ...named]);
    return { ...desired, references, generation: frame.more ? desired.generation : frame.generation };
  }
  const partial = bounded([...(desired.partial ?? []), ...named]);
  if (frame.more) return { ...desired, partial };
  return { logId: frame.logId, generation: frame.generation, references: partial, partial: null };
}

/** Drop the incomplete list of a session that has ended. */
export function dropPartial(desired: DesiredWork): DesiredWork {
  return { ...desired, partial: null };
}

/**
 * The desired work after a store history rejected, banned or deleted the node: all executions of that history stop, and
 * nothing new starts. Executions of other histories continue.
 */
export function castOut(desired: DesiredWork, kept: ReadonlyMap<string, LiveWork>, by: string): DesiredWork {
  const stopped = [...kept].filter(([, { logId }]) => logId === by);
  const references = new Map(
    stopped.map(([id]) => [id, create(ExecutionReferenceSchema, { id, desired: DesiredState.STOP })]),
  );
  return { logId: by, generation: by === desired.logId ? desired.generation : 0n, references, partial: null };
}

/** Drop references to executions that should be forgotten and no longer exist on this machine. */
export function pruneForgotten(desired: DesiredWork, kept: ReadonlyMap<string, LiveWork>): DesiredWork {
  const isDone = ({ id, desired: wanted }: ExecutionReference): boolean => {
    return wanted === DesiredState.FORGET && !kept.has(id);
  };
  const left = [...desired.references].filter(([, reference]) => !isDone(reference));
  return left.length === desired.references.size ? desired : { ...desired, references: new Map(left) };
}

/** The machine's current and former executions. */
export interface MachineWork {
  readonly kept: ReadonlyMap<string, LiveWork>;
  /** Executions that the machine has or had, and that no history has let it forget. */
  readonly met: ReadonlySet<string>;
  /** Specs, keyed by digest. The value is null if the store no longer has the spec. */
  readonly specs: ReadonlyMap<string, Uint8Array | null>;
}

/**
 * Decide what to do. Executions that are in no list continue. A restored history does not stop the executions of
 * another history until it has received their report and the machine has bound them to it. An execution that was on
 * this machine before, according to the machine or the store, and is missing now is lost and is never started a second
 * time.
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
      // Ignore a desired state that only a newer server knows.
      default:
        break;
    }
  }
  if (forget.length > 0) actions.push({ kind: "forget", ids: forget });
  if (bind.length > 0) actions.push({ kind: "bind", ids: bind });
  return { actions, wantedSpecs: [...wanted].filter((digest) => digest.length === SPEC_DIGEST_DIGITS) };
}

const LOST = "the execution is lost: it was started before, but its machine no longer knows it";
const NO_SPEC = "the store has no such spec";

/** The digests of specs that are still needed. */
export function usefulSpecs({ references }: DesiredWork): ReadonlySet<string> {
  return new Set([...references.values()].map(({ specDigest }) => hexOf(specDigest)));
}

const SPEC_DIGEST_DIGITS = 64;

/** Format bytes as hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function bounded(entries: readonly (readonly [string, ExecutionReference])[]): ReadonlyMap<string, ExecutionReference> {
  return new Map(entries.slice(-MOST_REFERENCES));
}
