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
 * which labels that it asks about were changed.
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
  return event.type === "node.labels.changed" && namesKeyOf(selector, event.before);
}

/**
 * Whether a change of labels is of one that a selector asks about. Not whether they matched before: labels that have
 * changed again since cannot tell. One event too many is better than one lost.
 */
function namesKeyOf(selector: Selector, before: Json | null): boolean {
  const changed = isJsonObject(before ?? undefined) ? (before as { readonly labels?: Json }).labels : undefined;
  if (!isJsonObject(changed)) return true;
  return selector.some(({ key }) => Object.hasOwn(changed, key));
}
