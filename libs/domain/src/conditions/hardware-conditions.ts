import type { Json, NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";
import { type Hardware, type HardwareGpu, toGib } from "./hardware.ts";
import { AMOUNT_TOLERANCE } from "./info-amounts.ts";

/** What can be wrong with a node's hardware, the gravest first. */
export type TroubleKind = "HARDWARE_DEGRADED" | "GPU_GONE" | "GPU_TOO_HOT";

/** One thing that is wrong with a node's hardware. Kind and part tell two apart. */
export interface Trouble {
  readonly kind: TroubleKind;
  /** "cores", "memory", "gpus", "gpu <uuid>" or "gpu <index>". */
  readonly part: string;
  /** For people. */
  readonly message: string;
}

const GRAVITY: readonly TroubleKind[] = ["HARDWARE_DEGRADED", "GPU_GONE", "GPU_TOO_HOT"];

/**
 * Find what is missing of the hardware that was approved: fewer cores, memory that is less by more than 2 %, GPUs that
 * are fewer or not the same ones. A GPU that was set aside for virtual machines is not missing, nor is what the report
 * does not tell. More is never wrong. While the GPUs cannot be determined, what was missing of them stays missing, and
 * nothing more of them does.
 *
 * @param before what was missing before.
 */
export function missingHardware(
  baseline: Hardware | null,
  present: Hardware | null,
  before: readonly Trouble[],
): readonly Trouble[] {
  if (baseline === null || present === null) return [];
  const missing: Trouble[] = [];
  if (present.cores > 0 && present.cores < baseline.cores) {
    missing.push(less("cores", `${present.cores} of ${baseline.cores} cores`));
  }
  const leastBytes = baseline.memoryBytes * (1 - AMOUNT_TOLERANCE);
  if (present.memoryBytes > 0 && present.memoryBytes < leastBytes) {
    const amounts = `${toGib(present.memoryBytes)} of ${toGib(baseline.memoryBytes)} GiB of memory`;
    missing.push(less("memory", amounts));
  }
  if (!present.areGpusKnown) return [...missing, ...before.filter(({ part }) => part.startsWith("gpu"))];
  const gone = baseline.gpus.filter((gpu) => gpu.uuid !== "" && !isThere(gpu, present));
  for (const { uuid, index } of gone) missing.push(less(`gpu ${uuid}`, `GPU ${index} is gone (${uuid})`));
  const count = present.gpus.length + setAside(baseline, present);
  if (gone.length === 0 && count < baseline.gpus.length) {
    missing.push(less("gpus", `${count} of ${baseline.gpus.length} GPUs`));
  }
  return missing;
}

/** Whether two lists name the same troubles; their texts may differ. */
export function isSameTroubles(left: readonly Trouble[], right: readonly Trouble[]): boolean {
  return left.length === right.length && newAmong(right, left).length === 0;
}

/** Whether something is wrong now that was not wrong before. */
export function hasNewTrouble(before: readonly Trouble[], after: readonly Trouble[]): boolean {
  return newAmong(after, before).length > 0;
}

/**
 * The event of troubles that came or went: `degraded` as soon as one is new, else `restored`. Null when they are the
 * same.
 *
 * @param change `before` and `after` are lists of the same kinds of trouble.
 */
export function hardwareEvent(change: {
  readonly subject: string;
  readonly actor: string;
  readonly before: readonly Trouble[];
  readonly after: readonly Trouble[];
}): NewEvent | null {
  const { subject, actor, before, after } = change;
  if (isSameTroubles(before, after)) return null;
  const [worst] = gravestFirst(newAmong(after, before));
  const gone = newAmong(before, after);
  return {
    type: worst === undefined ? "node.hardware.restored" : "node.hardware.degraded",
    subject,
    actor,
    reason: worst?.kind ?? "HARDWARE_RESTORED",
    message: worst === undefined ? `over: ${describeTroubles(gone)}` : describeTroubles(after),
    before: { troubles: before.map(troubleFact) },
    after: { troubles: after.map(troubleFact) },
  };
}

/** The event of an operator's word that a node's hardware is right as it is. */
export function hardwareAcceptedEvent(change: {
  readonly subject: string;
  readonly actor: string;
  readonly message: string;
  readonly before: Json;
  readonly after: Json;
}): NewEvent {
  const { before, after, ...circumstances } = change;
  return {
    ...circumstances,
    type: "node.hardware.accepted",
    reason: "OPERATOR_ACCEPTED",
    before: before === null ? null : { hardware: before },
    after: { hardware: after },
  };
}

/** The health that is shown of a healthy node with troubles: the state as it is, and the gravest as its reason. */
export function troubledHealth(health: Health, troubles: readonly Trouble[]): Health {
  const [worst] = gravestFirst(troubles);
  if (worst === undefined || health.state !== "HEALTHY") return health;
  return { ...health, reason: worst.kind, message: describeTroubles(troubles) };
}

/** The health that is shown of a healthy node that rebooted unexpectedly a short while ago. */
export function rebootedHealth(health: Health): Health {
  if (health.state !== "HEALTHY" || health.reason !== "HEARTBEAT_RECEIVED") return health;
  return {
    ...health,
    reason: "UNEXPECTED_REBOOT",
    message: "it rebooted recently without having said goodbye",
  };
}

/** Troubles in one line for people, the gravest first. */
export function describeTroubles(troubles: readonly Trouble[]): string {
  return gravestFirst(troubles)
    .map(({ message }) => message)
    .join(", ");
}

/** Whether a session shows that its machine was restarted without its agent having said goodbye. */
export function isUnexpectedReboot(
  before: {
    readonly bootId: string | null;
    readonly fingerprint: string | null;
    /** The reason of its connection before. */
    readonly connectionReason: string;
  },
  now: { readonly bootId: string; readonly fingerprint: string },
): boolean {
  const { bootId, fingerprint, connectionReason } = before;
  if (bootId === null || bootId === "" || now.bootId === "") return false;
  // Another machine has another boot; that is a move or a clone, not a reboot.
  if (fingerprint !== now.fingerprint) return false;
  return bootId !== now.bootId && connectionReason !== "AGENT_SHUTDOWN";
}

/** The event of a machine that was restarted without its agent having said goodbye. */
export function rebootedEvent(change: {
  readonly subject: string;
  readonly actor: string;
  /** Boot ids. */
  readonly before: string;
  readonly after: string;
}): NewEvent {
  const { subject, actor, before, after } = change;
  return {
    type: "node.rebooted",
    subject,
    actor,
    reason: "UNEXPECTED_REBOOT",
    message: "its boot id changed, and its agent had not said goodbye",
    before: { bootId: before },
    after: { bootId: after },
  };
}

/** The event of an unexpected reboot that is not shown any more. */
export function rebootClearedEvent(subject: string, actor: string): NewEvent {
  return {
    type: "node.reboot.cleared",
    subject,
    actor,
    reason: "REBOOT_OVER",
    message: "it has been up for long enough since",
    before: null,
    after: null,
  };
}

function less(part: string, message: string): Trouble {
  return { kind: "HARDWARE_DEGRADED", part, message };
}

/** Devices are known by what never changes; a driver may number them differently. */
function isThere(gpu: HardwareGpu, present: Hardware): boolean {
  return present.gpus.some(({ uuid }) => uuid === gpu.uuid) || isSetAside(gpu, present);
}

function isSetAside({ pciAddress }: HardwareGpu, { vfioAddresses }: Hardware): boolean {
  return pciAddress !== "" && vfioAddresses.includes(pciAddress);
}

function setAside(baseline: Hardware, present: Hardware): number {
  return baseline.gpus.filter((gpu) => isSetAside(gpu, present)).length;
}

function newAmong(troubles: readonly Trouble[], known: readonly Trouble[]): readonly Trouble[] {
  return troubles.filter(({ kind, part }) => !known.some((it) => it.kind === kind && it.part === part));
}

function gravestFirst(troubles: readonly Trouble[]): readonly Trouble[] {
  return troubles.toSorted((left, right) => GRAVITY.indexOf(left.kind) - GRAVITY.indexOf(right.kind));
}

function troubleFact({ kind, part }: Trouble): string {
  return `${kind} ${part}`;
}
