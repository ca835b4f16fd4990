import type { EventType } from "@rollcall/domain";
import type { StoredEvent } from "@rollcall/store";

/** Which events a watcher wants. An absent field restricts nothing. The store reads by the same fields. */
export interface EventFilter {
  readonly types?: readonly EventType[];
  readonly excludeTypes?: readonly EventType[];
  readonly subject?: string;
  readonly actor?: string;
}

/** Tells whether an event is wanted. */
export type EventPredicate = (event: Pick<StoredEvent, "type" | "subject" | "actor">) => boolean;

/** Compile a filter once for all events of a watch; null when it wants everything. */
export function compileEventFilter(filter: EventFilter): EventPredicate | null {
  if (Object.keys(filter).length === 0) return null;
  const { types, excludeTypes, subject, actor } = filter;
  const wanted = types === undefined ? null : new Set(types);
  const unwanted = new Set(excludeTypes);
  return (event) =>
    (wanted === null || wanted.has(event.type)) &&
    !unwanted.has(event.type) &&
    (subject === undefined || event.subject === subject) &&
    (actor === undefined || event.actor === actor);
}
