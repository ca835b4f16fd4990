import type { NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";

/** A change of a node's agent: one process opened the session that another process had before. */
export interface AgentSighting {
  /** A random id that each agent process chooses when it starts; "" if the agent sends none. */
  readonly instanceId: string;
  readonly bootId: string;
  readonly fingerprint: string;
  /** The peer as HOST:PORT. */
  readonly address: string;
  /** Wall time of the store in milliseconds since 1970. */
  readonly atMs: number;
  /** Whether the session of the previous process was still connected. */
  readonly tookOver: boolean;
}

/** Two agents that use one identity, the more recent one last. */
export type AgentPair = readonly [AgentSighting, AgentSighting];

/** Changes of agent that are older than this, in milliseconds, do not count as alternation. */
export const ALTERNATION_WINDOW_MS = 300_000;
/** The maximum number of takeovers of connected sessions within TAKEOVER_WINDOW_MS that restarts can explain. */
export const MOST_TAKEOVERS = 3;
/** The window for MOST_TAKEOVERS, in milliseconds. No machine boots four times within it. */
export const TAKEOVER_WINDOW_MS = 60_000;
/**
 * How long one agent must keep the session until the duplication counts as over, in milliseconds. Must exceed
 * ALTERNATION_WINDOW_MS.
 */
export const DUPLICATE_QUIET_MS = 600_000;
/** Maximum number of sightings to keep per node. */
export const MOST_SIGHTINGS = 8;

const ALTERNATIONS = 3;

/**
 * Find two agents that use the same identity. Either of these is proof:
 * - Three changes of agent within the window, if at least two of them return to an earlier agent. A restarted agent
 *   does not count as an earlier one, because each start has a new instance id. A change of address or replica is not a
 *   change of agent.
 *   A node that moves to a new machine changes its agent once. A machine that is reverted to a snapshot returns once.
 * - More than three takeovers of connected sessions within a minute. If there are many copies of one disk, it can take
 *   long until a copy returns.
 *
 * @param sightings the last changes of agent, oldest first.
 */
export function findDuplicate(sightings: readonly AgentSighting[], nowMs: number): AgentPair | null {
  return isAlternating(sightings, nowMs) || isTakenOverOften(sightings, nowMs) ? latestPair(sightings) : null;
}

function isAlternating(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const first = sightings.findIndex(({ atMs }) => nowMs - atMs <= ALTERNATION_WINDOW_MS);
  if (first === -1) return false;
  // The agent before the first change in the window counts too, no matter how long ago it was seen.
  const recent = sightings.slice(Math.max(0, first - 1));
  if (recent.length <= ALTERNATIONS) return false;
  const returns = recent.filter((it, index) => recent.slice(0, index).some((earlier) => isSameAgent(earlier, it)));
  return returns.length >= ALTERNATIONS - 1;
}

function isTakenOverOften(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const takeovers = sightings.filter(({ atMs, tookOver }) => tookOver && nowMs - atMs <= TAKEOVER_WINDOW_MS);
  return takeovers.length > MOST_TAKEOVERS;
}

/**
 * Whether enough time has passed without a change of agent that a duplication found by `findDuplicate` counts as over.
 */
export function isDuplicateOver(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const latest = sightings.at(-1);
  return latest === undefined || nowMs - latest.atMs >= DUPLICATE_QUIET_MS;
}

/**
 * The two agents that used a node's identity last. They are on different machines if there are several machines,
 * otherwise two processes on one machine. Null if there is only one sighting.
 */
export function latestPair(sightings: readonly AgentSighting[]): AgentPair | null {
  const latest = sightings.at(-1);
  if (latest === undefined) return null;
  const earlier = sightings.slice(0, -1);
  const other = earlier.findLast((it) => describe(it) !== describe(latest)) ?? earlier.at(-1);
  return other === undefined ? null : [other, latest];
}

/**
 * Whether a pair is already known. The pair stays the same if the two agents swap order, use other ports, or one of
 * them restarts.
 */
export function isKnownPair(pair: AgentPair, known: AgentPair | null): boolean {
  const isOneMachine = describe(pair[0]) === describe(pair[1]);
  return known !== null && (isOneMachine || describePair(pair) === describePair(known));
}

/** The health to show while two agents use one identity: the same state, with the duplicate identity as its reason. */
export function duplicatedHealth(health: Health, agents: AgentPair): Health {
  const message = `two agents use this identity: ${describePair(agents)}; give each machine its own state directory`;
  return { ...health, reason: "DUPLICATE_IDENTITY", message };
}

/** The event of two agents that use one identity. */
export function identityDuplicatedEvent(subject: string, agents: AgentPair, actor: string): NewEvent {
  return {
    type: "node.identity.duplicated",
    subject,
    actor,
    reason: "DUPLICATE_IDENTITY",
    message: `${describePair(agents)} alternate`,
    before: null,
    after: {
      machines: agents.map(({ instanceId, fingerprint, bootId, address }) => ({
        instanceId,
        fingerprint,
        bootId,
        address,
      })),
    },
  };
}

/** The event of an identity that is used by only one agent again. */
export function identityClearedEvent(subject: string, actor: string): NewEvent {
  return {
    type: "node.identity.cleared",
    subject,
    actor,
    reason: "ONE_MACHINE_LEFT",
    message: `only one agent for ${DUPLICATE_QUIET_MS / 60_000} minutes`,
    before: null,
    after: null,
  };
}

/** Whether two sightings are of the same process or, if agents send no instance id, of the same boot of a machine. */
export function isSameAgent(left: AgentSighting, right: AgentSighting): boolean {
  return left.instanceId === right.instanceId && left.bootId === right.bootId && left.fingerprint === right.fingerprint;
}

/** Sort the agents, so that the text does not depend on which agent was seen last. */
function describePair(agents: AgentPair): string {
  const [one = "", other = ""] = agents.map(describe).sort();
  return one === other ? `two agents on ${one}` : `${one} and ${other}`;
}

function describe({ fingerprint, bootId, address }: AgentSighting): string {
  return `machine ${short(fingerprint)} boot ${short(bootId)} at ${hostOf(address)}`;
}

/** Omit the port, because each stream has a different port. */
function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

/** Shorten an id to a length that distinguishes two ids. The event contains the full ids. */
function short(text: string): string {
  return text === "" ? "unknown" : text.slice(0, 12);
}
