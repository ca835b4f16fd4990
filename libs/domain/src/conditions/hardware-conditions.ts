import type { Json, NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";
import { type Hardware, type HardwareGpu, toGib } from "./hardware.ts";
import { AMOUNT_TOLERANCE } from "./info-amounts.ts";

/** What can be wrong with a node's hardware, the most serious first. */
export type TroubleKind = "HARDWARE_DEGRADED" | "GPU_GONE" | "GPU_TOO_HOT";

/** One thing that is wrong with a node's hardware, identified by kind and part. */
export interface Trouble {
  readonly kind: TroubleKind;
  /** "cores", "memory", "gpus", "gpu <uuid>" or "gpu <index>". */
  readonly part: string;
  /** For people. */
  readonly message: string;
}

const GRAVITY: readonly TroubleKind[] = ["HARDWARE_DEGRADED", "GPU_GONE", "GPU_TOO_HOT"];

/**
 * Compare hardware with the approved hardware. Returns the missing hardware: cores, more than 2 % of memory, or
 * GPUs. More hardware than approved is never a trouble. GPUs reserved for virtual machines count as present, and so
 * do amounts that the report omits. While the GPUs cannot be determined, the GPU troubles of `before` are returned.
 *
 * @param before the previous result.
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

/** Whether two lists contain the same troubles, regardless of their messages. */
export function isSameTroubles(left: readonly Trouble[], right: readonly Trouble[]): boolean {
  return left.length === right.length && newAmong(right, left).length === 0;
}

/** Whether `after` contains a trouble that `before` does not. */
export function hasNewTrouble(before: readonly Trouble[], after: readonly Trouble[]): boolean {
  return newAmong(after, before).length > 0;
}

/**
 * The event of troubles that appeared or ended: `degraded` if any is new, otherwise `restored`. Null if the troubles
 * are the same.
 *
 * @param change `before` and `after` must cover the same kinds of trouble.
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
    message: worst === undefined ? `resolved: ${describeTroubles(gone)}` : describeTroubles(after),
    before: { troubles: before.map(troubleFact) },
    after: { troubles: after.map(troubleFact) },
  };
}

/** The event of an operator accepting a node's current hardware. */
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

/** The health to show for a healthy node with troubles: its state, with the most serious trouble as the reason. */
export function troubledHealth(health: Health, troubles: readonly Trouble[]): Health {
  const [worst] = gravestFirst(troubles);
  if (worst === undefined || health.state !== "HEALTHY") return health;
  return { ...health, reason: worst.kind, message: describeTroubles(troubles) };
}

/** The health to show for a healthy node that recently rebooted unexpectedly. */
export function rebootedHealth(health: Health): Health {
  if (health.state !== "HEALTHY" || health.reason !== "HEARTBEAT_RECEIVED") return health;
  return {
    ...health,
    reason: "UNEXPECTED_REBOOT",
    message: "it recently rebooted unexpectedly",
  };
}

/** Troubles in one line for people, the most serious first. */
export function describeTroubles(troubles: readonly Trouble[]): string {
  return gravestFirst(troubles)
    .map(({ message }) => message)
    .join(", ");
}

/** Whether a new session shows that the node's machine restarted although its agent had not announced a shutdown. */
export function isUnexpectedReboot(
  before: {
    readonly bootId: string | null;
    readonly fingerprint: string | null;
    /** The reason of the node's previous connection state. */
    readonly connectionReason: string;
  },
  now: { readonly bootId: string; readonly fingerprint: string },
): boolean {
  const { bootId, fingerprint, connectionReason } = before;
  if (bootId === null || bootId === "" || now.bootId === "") return false;
  // Ignore the boot id of a different machine: the node was moved or cloned, not rebooted.
  if (fingerprint !== now.fingerprint) return false;
  return bootId !== now.bootId && connectionReason !== "AGENT_SHUTDOWN";
}

/** The event of a machine that restarted without its agent announcing a shutdown. */
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
    message: "its boot id changed, and its agent had not announced a shutdown",
    before: { bootId: before },
    after: { bootId: after },
  };
}

/** The event of an unexpected reboot that is no longer shown. */
export function rebootClearedEvent(subject: string, actor: string): NewEvent {
  return {
    type: "node.reboot.cleared",
    subject,
    actor,
    reason: "REBOOT_OVER",
    message: "it has been up for long enough since then",
    before: null,
    after: null,
  };
}

function less(part: string, message: string): Trouble {
  return { kind: "HARDWARE_DEGRADED", part, message };
}

/** Identify devices by values that never change, because a driver can renumber devices. */
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
