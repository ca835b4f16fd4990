import { setImmediate } from "node:timers/promises";
import { create, type MessageShape } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  NodeChangeSchema,
  type RegistryService,
  WatchNodesResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { EncodedItems, encodeFast, isBinaryCall, nodeToProto, type ReadMask } from "@rollcall/wire";
import { parseNodeFilter, parseNodeMask } from "../convert.ts";
import { parseNodeWatchStart } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { type NodeUpdate, watchNodes as watch } from "../watch/watch-nodes.ts";

/** Number of changes to encode before yielding to other work. */
const CHANGES_PER_TICK = 8;

/** Send the current nodes, and then their changes. */
export function watchNodes({
  store,
  clock,
  watches,
}: RegistryServices): MethodImpl<typeof RegistryService.method.watchNodes> {
  const forms = new EncodedForms();
  const encode = async (updates: readonly NodeUpdate[], mask: ReadMask | null, encoded: EncodedForm | null) => {
    const changes = new EncodedItems(NodeChangeSchema);
    let made = 0;
    for (const update of updates) {
      let bytes = encoded?.get(update);
      if (bytes === undefined) {
        bytes = encodeFast(NodeChangeSchema, changeToProto(update, mask));
        encoded?.set(update, bytes);
        made += 1;
        if (made % CHANGES_PER_TICK === 0) await setImmediate();
      }
      changes.addBytes(bytes);
    }
    return changes;
  };
  return async function* (request, { signal, requestHeader }) {
    const isBinary = isBinaryCall(requestHeader);
    const filter = parseNodeFilter(request);
    const mask = parseNodeMask(request);
    const start = parseNodeWatchStart(request.start, store.logId());
    const { events, nodes: hub, snapshots, limits } = watches;
    const options = { store, events, hub, snapshots, clock, limits, filter, start, signal };
    const key = maskKey(request.readMask?.paths ?? []);
    const encoded = forms.open(key);
    try {
      for await (const { updates, isComplete, resume, revision } of watch(options)) {
        const rest = {
          snapshotComplete: isComplete,
          resumeToken: formatResumeToken(resume),
          revision,
        };
        const whole = () => updates.map((update) => changeToProto(update, mask));
        yield isBinary
          ? (await encode(updates, mask, encoded)).answer(WatchNodesResponseSchema, "changes", rest)
          : create(WatchNodesResponseSchema, { ...rest, changes: whole() });
      }
    } finally {
      if (encoded !== null) forms.close(key);
    }
  };
}

/** The encoded changes for one mask: its form. */
type EncodedForm = WeakMap<NodeUpdate, Uint8Array>;

/**
 * The maximum number of masks whose watchers share encoded changes. Watchers with other masks encode changes for
 * themselves, and keep nothing.
 */
const MOST_FORMS = 16;

/** The key of a mask, which does not depend on the order of its fields. */
const maskKey = (paths: readonly string[]) => [...new Set(paths)].sort().join(",");

/**
 * Encoded nodes of the window. Watchers that request the same fields share them, so that each node is encoded once
 * for any number of watchers. Each mask keeps a copy of the window, so the number of masks is small, and each copy is
 * deleted with its last watcher.
 */
export class EncodedForms {
  readonly #forms = new Map<string, { readonly form: EncodedForm; watchers: number }>();

  /** Add a watcher with this mask. Returns null if too many other masks already have a form. */
  open(key: string): EncodedForm | null {
    const known = this.#forms.get(key);
    if (known !== undefined) {
      known.watchers += 1;
      return known.form;
    }
    if (this.#forms.size >= MOST_FORMS) return null;
    const form: EncodedForm = new WeakMap();
    this.#forms.set(key, { form, watchers: 1 });
    return form;
  }

  /** Remove a watcher that open() has given a form. */
  close(key: string): void {
    const known = this.#forms.get(key);
    if (known === undefined) return;
    known.watchers -= 1;
    if (known.watchers === 0) this.#forms.delete(key);
  }
}

function changeToProto(update: NodeUpdate, mask: ReadMask | null): MessageShape<typeof NodeChangeSchema> {
  return create(NodeChangeSchema, {
    change:
      "removedId" in update
        ? { case: "removedId", value: update.removedId }
        : { case: "upserted", value: nodeToProto(update, mask) },
  });
}
