/** The fields of an event that decide which group it belongs to. */
export interface Groupable {
  readonly type: string;
  readonly actor: string;
  readonly reason: string;
  readonly did: string;
  readonly atMs: number | null;
}

/** Events that one cause produced, newest first. */
export type EventGroup<E> = readonly [newest: E, ...others: E[]];

/** Maximum time between two consecutive events of a group. Decisions about many nodes are sent in batches. */
const APART_MS = 10_000;

/**
 * Group events, newest first. A group reports the same about several subjects, with the same actor and reason, within a
 * short time. Other events can be in between: a lost rack causes many disconnects and many changes of health.
 */
export function groupEvents<E extends Groupable>(events: readonly E[]): readonly EventGroup<E>[] {
  const groups: [E, ...E[]][] = [];
  const open = new Map<string, [E, ...E[]]>();
  for (const event of events) {
    const key = JSON.stringify([event.type, event.actor, event.reason, event.did]);
    const group = open.get(key);
    const oldestMs = group?.at(-1)?.atMs ?? Number.POSITIVE_INFINITY;
    if (group !== undefined && oldestMs - (event.atMs ?? 0) <= APART_MS) {
      group.push(event);
      continue;
    }
    const made: [E, ...E[]] = [event];
    groups.push(made);
    open.set(key, made);
  }
  return groups;
}

/** The noun for the subjects of a type of event. */
export function subjectNoun(type: string): string {
  return type.startsWith("node.") ? "nodes" : type.startsWith("job.") ? "jobs" : "subjects";
}

/**
 * The name of an event's actor. A token has its name if the page knows it, a user has the subject only, and a process
 * has its kind and its name.
 */
export function actorName(actor: string, tokens: ReadonlyMap<string, string>): string {
  const [kind = "", ...rest] = actor.split(":");
  const id = rest.join(":");
  if (kind === "token") return tokens.get(id) ?? `token ${id}`;
  if (kind === "user") return id;
  return id === "" ? actor : `${kind} ${id}`;
}
