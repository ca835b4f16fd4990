import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { fleet } from "../../live/fleet.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { type OrderBy, SortedView } from "../../state/nodes/sorted-view.ts";

/** The live nodes that match a filter, sorted. Each change makes another object. */
export interface NodesView {
  /** The matching nodes. The array can change in place, shortly before the next view is published. */
  readonly rows: readonly NodeRow[];
  /** All nodes that the page has. */
  readonly all: ReadonlyMap<string, NodeRow>;
}

/** Minimum time between two renders. Changes within this time are drawn together. */
const DRAW_MS = 120;

/** Follow the nodes that pass a test. */
export function useNodesView(test: (row: NodeRow) => boolean, by: OrderBy, reversed: boolean): NodesView {
  const view = useMemo(() => new LiveView(test, { by, reversed }), [test, by, reversed]);
  return useSyncExternalStore(view.subscribe, view.read);
}

/** Keeps a sorted view up to date while a component is subscribed to it. */
class LiveView {
  readonly #view: SortedView;
  /** The number of fleet changes that the view includes. */
  #changes = fleet.changes;
  #published: NodesView;

  constructor(test: (row: NodeRow) => boolean, order: { readonly by: OrderBy; readonly reversed: boolean }) {
    this.#view = new SortedView(fleet.rows.values(), test, order);
    this.#published = { rows: this.#view.rows, all: fleet.rows };
  }

  readonly read = (): NodesView => this.#published;

  readonly subscribe = (listener: () => void): (() => void) => {
    const publish = () => {
      this.#published = { rows: this.#view.rows, all: fleet.rows };
      listener();
    };
    // The fleet changed after the view was built and before it subscribed. Build the view again.
    if (fleet.changes !== this.#changes) {
      this.#view.reset(fleet.rows.values());
      publish();
    }
    let timer: number | undefined;
    const stop = fleet.listen((changes) => {
      this.#changes = fleet.changes;
      if (!this.#view.apply(changes)) return;
      timer ??= window.setTimeout(() => {
        timer = undefined;
        publish();
      }, DRAW_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  };
}

/** The last value that is not null, starting with `first`. While the user types a selector, it is often invalid. */
export function useLast<T>(value: T | null, first: T): T {
  const [last, setLast] = useState(value ?? first);
  useEffect(() => {
    if (value !== null) setLast(value);
  }, [value]);
  return value ?? last;
}
