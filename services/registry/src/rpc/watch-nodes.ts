import { setImmediate } from "node:timers/promises";
import { create, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { MethodImpl } from "@connectrpc/connect";
import {
  NodeChangeSchema,
  type RegistryService,
  WatchNodesResponseSchema,
} from "@rollcall/api/rollcall/registry/v1/registry_pb";
import { EncodedItems, isBinaryCall, nodeToProto, type ReadMask } from "@rollcall/wire";
import { parseNodeFilter, parseNodeMask } from "../convert.ts";
import { parseNodeWatchStart } from "../convert-events.ts";
import type { RegistryServices } from "../registry-services.ts";
import { formatResumeToken } from "../watch/resume-token.ts";
import { type NodeUpdate, watchNodes as watch } from "../watch/watch-nodes.ts";

/** After so many changes that had to be encoded the process turns to others. */
const CHANGES_A_TURN = 8;

/** Send nodes as they are, and then as they change. */
export function watchNodes({
  store,
  clock,
  watches,
}: RegistryServices): MethodImpl<typeof RegistryService.method.watchNodes> {
  const forms = new EncodedForms();
  const encode = async (updates: readonly NodeUpdate[], mask: ReadMask | null, encoded: EncodedForm) => {
    const changes = new EncodedItems(NodeChangeSchema);
    let made = 0;
    for (const update of updates) {
      let bytes = encoded.get(update);
      if (bytes === undefined) {
        bytes = toBinary(NodeChangeSchema, changeToProto(update, mask));
        encoded.set(update, bytes);
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
    const encoded = forms.of(request.readMask?.paths ?? []);
    const start = parseNodeWatchStart(request.start, store.logId());
    const { events, nodes: hub, snapshots, limits } = watches;
    const options = { store, events, hub, snapshots, clock, limits, filter, start, signal };
    for await (const { updates, isComplete, resume, revision } of watch(options)) {
      const rest = {
        snapshotComplete: isComplete,
        resumeToken: formatResumeToken(resume),
        revision,
      };
      yield isBinary
        ? (await encode(updates, mask, encoded)).answer(WatchNodesResponseSchema, "changes", rest)
        : create(WatchNodesResponseSchema, { ...rest, changes: updates.map((update) => changeToProto(update, mask)) });
    }
  };
}

/** Changes as they were encoded for one mask. */
type EncodedForm = WeakMap<NodeUpdate, Uint8Array>;

/** Masks whose watchers share what is encoded; those of further ones encode for themselves. */
const MOST_FORMS = 16;

/**
 * All watchers of the window that ask for the same fields share its nodes: each is encoded once, whatever their number.
 */
class EncodedForms {
  readonly #forms = new Map<string, EncodedForm>();

  of(paths: readonly string[]): EncodedForm {
    const key = [...new Set(paths)].sort().join(",");
    const known = this.#forms.get(key) ?? new WeakMap();
    // The one that was asked for last is the last to be forgotten.
    this.#forms.delete(key);
    this.#forms.set(key, known);
    const [oldest] = this.#forms.keys();
    if (this.#forms.size > MOST_FORMS && oldest !== undefined) this.#forms.delete(oldest);
    return known;
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
