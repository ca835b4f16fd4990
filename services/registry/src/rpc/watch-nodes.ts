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

/** After this many changes that had to be encoded the process turns to others. */
const CHANGES_A_TURN = 8;

/** Send nodes as they are, and then as they change. */
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
        if (made % CHANGES_A_TURN === 0) await setImmediate();
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

/** Changes as they were encoded for one mask. */
type EncodedForm = WeakMap<NodeUpdate, Uint8Array>;

/** Masks whose watchers share what is encoded; watchers of further ones encode for themselves, and keep nothing. */
const MOST_FORMS = 16;

/** The same for the same fields, in whatever order they are named. */
const maskKey = (paths: readonly string[]) => [...new Set(paths)].sort().join(",");

/**
 * All watchers of the window that ask for the same fields share its nodes: each is encoded once, whatever their number.
 * What is kept is a copy of the window for each of the masks, so they are few, and go with their last watcher.
 */
export class EncodedForms {
  readonly #forms = new Map<string, { readonly form: EncodedForm; watchers: number }>();

  /** A watcher begins. Null where too many masks have a form already. */
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

  /** A watcher that got a form ends. */
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
