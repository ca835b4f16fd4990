import type { EventRow, Node } from "@rollcall/store";

/**
 * The approximate maximum size of one message of a watch. gRPC clients accept 4 MiB by default. The limit is far
 * lower, because each of two thousand watchers may have an unread message.
 */
export const MESSAGE_BYTES = 524_288;

/** The size of an event or a node without its variable-length fields. */
const BASE_BYTES = 200;

/** The approximate size of an event, in memory and as a message. */
export const sizeOfEvent = remembered(
  ({ message, before, after }: EventRow) => BASE_BYTES + message.length * 3 + sizeOfJson(before) + sizeOfJson(after),
);

/** The approximate size of a node. */
export const sizeOfNode = remembered(
  ({ info, labels, membership, mark, holds }: Node) =>
    5 * BASE_BYTES +
    sizeOfJson(info) +
    sizeOfJson(labels) +
    sizeOfJson(holds) +
    (membership.message.length + (mark?.message.length ?? 0)) * 3,
);

/** Measure each object once, because all watchers share it. */
function remembered<T extends object>(measure: (value: T) => number): (value: T) => number {
  const known = new WeakMap<T, number>();
  return (value) => {
    let size = known.get(value);
    if (size === undefined) {
      size = measure(value);
      known.set(value, size);
    }
    return size;
  };
}

/** The size of a value as JSON, in bytes: a character can take three. */
function sizeOfJson(value: unknown): number {
  return value === null ? 0 : Buffer.byteLength(JSON.stringify(value));
}
