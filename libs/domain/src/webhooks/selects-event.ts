import { isJsonObject, type Json, type NewEvent } from "../events/events.ts";
import { matches, type Selector } from "../labels/selectors.ts";

/** Which events a webhook wants. */
export interface EventSelection {
  /** Only these types; empty for all. */
  readonly types: readonly string[];
  /** Not these types. */
  readonly excludeTypes: readonly string[];
  /** Over the labels of the node that an event is about; empty for events about anything. */
  readonly selector: Selector;
}

/**
 * Tell whether a webhook wants an event. With a selector it wants those about nodes whose labels match, and those by
 * which labels that matched were changed.
 *
 * @param labels of the event's subject; null when nothing is known of a node of this id.
 */
export function selectsEvent(
  { types, excludeTypes, selector }: EventSelection,
  event: Pick<NewEvent, "type" | "before">,
  labels: ReadonlyMap<string, string> | null,
): boolean {
  if (types.length > 0 && !types.includes(event.type)) return false;
  if (excludeTypes.includes(event.type)) return false;
  if (selector.length === 0) return true;
  if (!event.type.startsWith("node.")) return false;
  // What is known of no node cannot be judged: better told than lost.
  if (labels === null || matches(selector, labels)) return true;
  return event.type === "node.labels.changed" && matches(selector, labelsBefore(labels, event.before));
}

/** Labels as they were before a change, which names those that differ alone. */
function labelsBefore(labels: ReadonlyMap<string, string>, before: Json | null): ReadonlyMap<string, string> {
  const changed = isJsonObject(before ?? undefined) ? (before as { readonly labels?: Json }).labels : undefined;
  const earlier = new Map(labels);
  if (!isJsonObject(changed)) return earlier;
  for (const [key, value] of Object.entries(changed)) {
    if (typeof value === "string") earlier.set(key, value);
    else earlier.delete(key);
  }
  return earlier;
}
