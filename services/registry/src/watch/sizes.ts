import type { NodeRecord, StoredEvent } from "@rollcall/store";

/**
 * Bytes of one message of a watch, about. gRPC clients take 4 MiB unless told otherwise; ours make messages of a
 * fraction of it, since each of two thousand watchers may have one that it has not read yet.
 */
export const MESSAGE_BYTES = 524_288;

/** An event, or a node, without its texts. */
const BASE_BYTES = 200;

/** About how many bytes an event has, in memory and as a message. */
export const sizeOfEvent = remembered(
  ({ message, before, after }: StoredEvent) => BASE_BYTES + message.length * 3 + sizeOfJson(before) + sizeOfJson(after),
);

/** About how many bytes a node has. */
export const sizeOfNode = remembered(
  ({ info, labels, membership, mark, holds }: NodeRecord) =>
    5 * BASE_BYTES +
    sizeOfJson(info) +
    sizeOfJson(labels) +
    sizeOfJson(holds) +
    (membership.message.length + (mark?.message.length ?? 0)) * 3,
);

/** All watchers share what is sent, so that each is measured once. */
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

/** In bytes: a text may have three for each of its characters. */
function sizeOfJson(value: unknown): number {
  return value === null ? 0 : Buffer.byteLength(JSON.stringify(value));
}
