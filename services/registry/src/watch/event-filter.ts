import type { EventType } from "@rollcall/domain";
import type { StoredEvent } from "@rollcall/store";

/** Which events a watcher wants. An absent field restricts nothing. The store reads by the same fields. */
export interface EventFilter {
  readonly types?: readonly EventType[];
  readonly subject?: string;
  readonly actor?: string;
}

/** Tells whether an event is wanted. */
export type EventPredicate = (event: Pick<StoredEvent, "type" | "subject" | "actor">) => boolean;

/** Compile a filter once for all events of a watch; null when it wants everything. */
export function compileEventFilter({ types, subject, actor }: EventFilter): EventPredicate | null {
  if (types === undefined && subject === undefined && actor === undefined) return null;
  const wanted = types === undefined ? null : new Set(types);
  return (event) =>
    (wanted === null || wanted.has(event.type)) &&
    (subject === undefined || event.subject === subject) &&
    (actor === undefined || event.actor === actor);
}
