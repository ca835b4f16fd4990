import type { StoredEvent } from "@rollcall/store";

/** Events that fit into one message. */
export interface EventPart {
  readonly events: readonly StoredEvent[];
  readonly isLast: boolean;
}

/** Bytes of one message, about. gRPC clients take 4 MiB unless told otherwise; ours make messages of a fraction of it. */
const MESSAGE_BYTES = 512 * 1024;
/** An event without its texts. */
const BASE_BYTES = 200;

/** Split events into parts that fit into a message each; none for no events. */
export function* splitBySize(
  events: readonly StoredEvent[],
  mostBytes = MESSAGE_BYTES,
): Generator<EventPart> {
  let from = 0;
  let bytes = 0;
  for (const [index, event] of events.entries()) {
    const size = sizeOf(event);
    if (bytes + size > mostBytes && index > from) {
      yield { events: events.slice(from, index), isLast: false };
      from = index;
      bytes = 0;
    }
    bytes += size;
  }
  if (events.length === 0) return;
  yield { events: from === 0 ? events : events.slice(from), isLast: true };
}

function sizeOf(event: StoredEvent): number {
  // Of all events only these can be large: a node may have 64 labels of each tier.
  const labels = event.type === "node.labels.changed" ? textSize(event) : 0;
  return BASE_BYTES + event.message.length * 3 + labels;
}

function textSize({ before, after }: StoredEvent): number {
  return JSON.stringify(before).length + JSON.stringify(after).length;
}
