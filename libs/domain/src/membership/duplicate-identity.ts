import type { NewEvent } from "../events/events.ts";
import type { Health } from "../states.ts";

/** An agent process that opened a node's session when the one before was another: where the node went over to it. */
export interface AgentSighting {
  /** Random, chosen by each agent process at its start; "" for an agent that sends none. */
  readonly instanceId: string;
  readonly bootId: string;
  readonly fingerprint: string;
  /** The peer as HOST:PORT. */
  readonly address: string;
  /** Wall time of the record in milliseconds since 1970. */
  readonly atMs: number;
  /** Whether the session of the process before was still connected. */
  readonly tookOver: boolean;
}

/** Two agents that use one identity, in the order in which they were seen last. */
export type AgentPair = readonly [AgentSighting, AgentSighting];

/** Changes of agent that lie further back than this are no sign of two agents. */
export const ALTERNATION_WINDOW_MS = 300_000;
/** Connected sessions that are taken over this often within TAKEOVER_WINDOW_MS are no restarts. */
export const MOST_TAKEOVERS = 3;
/** No machine boots four times within this. */
export const TAKEOVER_WINDOW_MS = 60_000;
/** After so long without a change of agent one of the two is taken to be gone. Must exceed the window. */
export const DUPLICATE_QUIET_MS = 600_000;
/** The most sightings that need to be kept of a node. */
export const MOST_SIGHTINGS = 8;

const ALTERNATIONS = 3;

/**
 * Find two agents that use one identity in turns, with one of two proofs. Three changes of agent within the window, of
 * which at least two lead back to one that was there before: an agent that is restarted any number of times never comes
 * back as what it was, because each start has its own instance id; a change of address or of replica is no change of
 * agent; a node that moves to a new machine changes once, and a machine that is reverted to a snapshot comes back once.
 * Or more than three takeovers of connected sessions within a minute: many copies of one disk need not come back soon.
 *
 * @param sightings the last changes of agent, oldest first.
 */
export function findDuplicate(sightings: readonly AgentSighting[], nowMs: number): AgentPair | null {
  return isAlternating(sightings, nowMs) || isTakenOverOften(sightings, nowMs) ? latestPair(sightings) : null;
}

function isAlternating(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const first = sightings.findIndex(({ atMs }) => nowMs - atMs <= ALTERNATION_WINDOW_MS);
  if (first === -1) return false;
  // The agent from which the first change within the window led away may have been there for months.
  const recent = sightings.slice(Math.max(0, first - 1));
  if (recent.length <= ALTERNATIONS) return false;
  const returns = recent.filter((it, index) => recent.slice(0, index).some((earlier) => isSameAgent(earlier, it)));
  return returns.length >= ALTERNATIONS - 1;
}

function isTakenOverOften(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const takeovers = sightings.filter(({ atMs, tookOver }) => tookOver && nowMs - atMs <= TAKEOVER_WINDOW_MS);
  return takeovers.length > MOST_TAKEOVERS;
}

/** Tell whether nothing has changed for so long that what `findDuplicate` found is over. */
export function isDuplicateOver(sightings: readonly AgentSighting[], nowMs: number): boolean {
  const latest = sightings.at(-1);
  return latest === undefined || nowMs - latest.atMs >= DUPLICATE_QUIET_MS;
}

/**
 * The two agents that a node's identity was last seen with, on two machines where it was on several; null when there
 * was only one.
 */
export function latestPair(sightings: readonly AgentSighting[]): AgentPair | null {
  const latest = sightings.at(-1);
  if (latest === undefined) return null;
  const earlier = sightings.slice(0, -1);
  const other = earlier.findLast((it) => describe(it) !== describe(latest)) ?? earlier.at(-1);
  return other === undefined ? null : [other, latest];
}

/**
 * Whether a pair is no news after another one. Which of the two came last, and from which port, says nothing new;
 * neither does a restart of one of them.
 */
export function isKnownPair(pair: AgentPair, known: AgentPair | null): boolean {
  const isOneMachine = describe(pair[0]) === describe(pair[1]);
  return known !== null && (isOneMachine || describePair(pair) === describePair(known));
}

/**
 * The health that people are shown while two agents use one identity: the state as it is, and the reason that matters.
 */
export function duplicatedHealth(health: Health, agents: AgentPair): Health {
  const message = `two agents use this identity: ${describePair(agents)}; give each machine its own state directory`;
  return { ...health, reason: "DUPLICATE_IDENTITY", message };
}

/** The event of two agents that were found to use one identity. */
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

/** The event of an identity that one agent has had to itself for long enough. */
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

/** Whether two sightings are of one process; of one boot of a machine where agents send no instance id. */
export function isSameAgent(left: AgentSighting, right: AgentSighting): boolean {
  return left.instanceId === right.instanceId && left.bootId === right.bootId && left.fingerprint === right.fingerprint;
}

/** In an order that does not depend on which came last. */
function describePair(agents: AgentPair): string {
  const [one = "", other = ""] = agents.map(describe).sort();
  return one === other ? `two agents on ${one}` : `${one} and ${other}`;
}

function describe({ fingerprint, bootId, address }: AgentSighting): string {
  return `machine ${short(fingerprint)} boot ${short(bootId)} at ${hostOf(address)}`;
}

/** Each stream comes from another port. */
function hostOf(address: string): string {
  return address.replace(/:\d+$/, "");
}

/** Enough to tell two apart; the event has them whole. */
function short(text: string): string {
  return text === "" ? "unknown" : text.slice(0, 12);
}
