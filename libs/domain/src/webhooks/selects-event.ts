import { isJsonObject, type Json, type NewEvent } from "../events/events.ts";
import { matches, type Selector } from "../labels/selectors.ts";

/** The events that a webhook receives. */
export interface EventSelection {
  /** Event types to receive; empty for all. */
  readonly types: readonly string[];
  /** Excludes these types. */
  readonly excludeTypes: readonly string[];
  /** Selects events about nodes whose labels match; empty to select events about anything. */
  readonly selector: Selector;
}

/**
 * Whether a webhook receives an event. With a selector, it receives events about nodes whose labels match, and
 * events that change a label named in the selector.
 *
 * @param labels the labels of the event's subject; null if no such node is known.
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
  // Send the event if the node is unknown. Its labels cannot be checked, and sending the event is better than
  // losing it.
  if (labels === null || matches(selector, labels)) return true;
  return event.type === "node.labels.changed" && namesKeyOf(selector, event.before);
}

/**
 * Whether a change to labels affects a label that the selector names. By now the labels may have changed again, so it
 * is unknown whether all of them matched before this change. Sending one event too many is better than losing one.
 */
function namesKeyOf(selector: Selector, before: Json | null): boolean {
  const changed = isJsonObject(before ?? undefined) ? (before as { readonly labels?: Json }).labels : undefined;
  if (!isJsonObject(changed)) return true;
  return selector.some(({ key }) => Object.hasOwn(changed, key));
}
