import type { NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";

/** A machine that opened a node's session when the one before was another: where the node went over to it. */
export interface MachineSighting {
  readonly bootId: string;
  readonly fingerprint: string;
  /** The peer as HOST:PORT. */
  readonly address: string;
  /** Wall time of the record in milliseconds since 1970. */
  readonly atMs: number;
}

/** Two machines that use one identity, in the order in which they were seen last. */
export type MachinePair = readonly [MachineSighting, MachineSighting];

/** Changes of machine that lie further back than this are no sign of two machines. */
export const ALTERNATION_WINDOW_MS = 300_000;
/** After so long without a change of machine one of the two is taken to be gone. Must exceed the window. */
export const DUPLICATE_QUIET_MS = 600_000;
/** The most sightings that need to be kept of a node. */
export const MOST_SIGHTINGS = 8;

const ALTERNATIONS = 3;

/**
 * Tell whether two machines alternate under one identity, and which: three changes of machine within the window, of
 * which at least two lead back to one that was there before. A machine that is restarted any number of times never
 * comes back as what it was, because each start has a boot id of its own; a node that moves to a new machine changes
 * once.
 *
 * @param sightings the last changes of machine, oldest first.
 */
export function findDuplicate(sightings: readonly MachineSighting[], nowMs: number): MachinePair | null {
  const first = sightings.findIndex(({ atMs }) => nowMs - atMs <= ALTERNATION_WINDOW_MS);
  if (first === -1) return null;
  // The machine from which the first change within the window led away may have been there for months.
  const recent = sightings.slice(Math.max(0, first - 1));
  if (recent.length <= ALTERNATIONS) return null;
  const returns = recent.filter((it, index) => recent.slice(0, index).some((earlier) => isSameMachine(earlier, it)));
  const latest = recent.at(-1);
  const before = recent.at(-2);
  if (returns.length < ALTERNATIONS - 1 || latest === undefined || before === undefined) {
    return null;
  }
  return [before, latest];
}

/** Tell whether nothing has changed for so long that what `findDuplicate` found is over. */
export function isDuplicateOver(sightings: readonly MachineSighting[], nowMs: number): boolean {
  const latest = sightings.at(-1);
  return latest === undefined || nowMs - latest.atMs >= DUPLICATE_QUIET_MS;
}

/** The two machines that a node's identity was last seen on; null when it was on one alone. */
export function latestPair(sightings: readonly MachineSighting[]): MachinePair | null {
  const [before, latest] = sightings.slice(-2);
  return before === undefined || latest === undefined ? null : [before, latest];
}

/** Whether two pairs read the same to people: which of the two came last, and from which port, says nothing new. */
export function isSamePair(left: MachinePair, right: MachinePair | null): boolean {
  return right !== null && describePair(left) === describePair(right);
}

/**
 * The health that people are shown while two machines use one identity: the state as it is, and the reason that
 * matters.
 */
export function duplicatedHealth(health: Health, machines: MachinePair): Health {
  const message = `two machines use this identity: ${describePair(machines)}; give each a state directory of its own`;
  return { ...health, reason: "DUPLICATE_IDENTITY", message };
}

/** The event of two machines that were found to use one identity. */
export function identityDuplicatedEvent(subject: string, machines: MachinePair, actor: string): NewEvent {
  return {
    type: "node.identity.duplicated",
    subject,
    actor,
    reason: "DUPLICATE_IDENTITY",
    message: `${describePair(machines)} alternate`,
    before: null,
    after: {
      machines: machines.map(({ fingerprint, bootId, address }) => ({
        fingerprint,
        bootId,
        address,
      })),
    },
  };
}

/** The event of an identity that one machine has had to itself for long enough. */
export function identityClearedEvent(subject: string, actor: string): NewEvent {
  return {
    type: "node.identity.cleared",
    subject,
    actor,
    reason: "ONE_MACHINE_LEFT",
    message: `one machine alone for ${DUPLICATE_QUIET_MS / 60_000} minutes`,
    before: null,
    after: null,
  };
}

function isSameMachine(left: MachineSighting, right: MachineSighting): boolean {
  return left.bootId === right.bootId && left.fingerprint === right.fingerprint;
}

/** In an order that does not depend on which came last. */
function describePair(machines: MachinePair): string {
  return machines.map(describe).sort().join(" and ");
}

function describe({ fingerprint, bootId, address }: MachineSighting): string {
  return `machine ${short(fingerprint)} boot ${short(bootId)} at ${hostOf(address)}`;
}

/** Each stream comes from a port of its own. */
function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

/** Enough to tell two apart; the event has them whole. */
function short(text: string): string {
  return text === "" ? "unknown" : text.slice(0, 12);
}
