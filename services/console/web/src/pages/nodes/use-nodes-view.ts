import { useEffect, useMemo, useRef, useState } from "react";
import { fleet } from "../../live/fleet.ts";
import type { NodeFilter } from "../../state/nodes/node-filter.ts";
import { nodeTest } from "../../state/nodes/node-filter.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import { type OrderBy, SortedView } from "../../state/nodes/sorted-view.ts";

/** The nodes of a filter in an order, as they are. */
export interface NodesView {
  /** Changes in place; `version` tells when. */
  readonly rows: readonly NodeRow[];
  readonly version: number;
  /** What is wrong with the filter's selector; empty when nothing is. */
  readonly wrong: string;
}

/** A view, and how many changes of the fleet it has seen. */
interface MadeView {
  readonly view: SortedView;
  readonly changes: number;
}

/** Changes that come together are drawn together, at most so often. */
const DRAW_MS = 120;

/** Follow the nodes of a filter. */
export function useNodesView(filter: NodeFilter, by: OrderBy, reversed: boolean): NodesView {
  const [version, setVersion] = useState(0);
  const wrongFilter = useMemo(() => nodeTest(filter), [filter]);
  const last = useRef<MadeView | null>(null);
  const made = useMemo(() => {
    // A selector that is being typed is wrong half of the time: the view before stays.
    if (!wrongFilter.ok) return last.current;
    return { view: new SortedView(fleet.rows.values(), wrongFilter.test, { by, reversed }), changes: fleet.changes };
  }, [wrongFilter, by, reversed]);
  last.current = made;
  useEffect(() => {
    if (made === null) return;
    const { view } = made;
    // What changed since the view was made, no one has told it.
    if (fleet.changes !== made.changes) {
      view.reset(fleet.rows.values());
      setVersion((before) => before + 1);
    }
    let timer: number | undefined;
    const stop = fleet.listen((changes) => {
      if (!view.apply(changes)) return;
      timer ??= window.setTimeout(() => {
        timer = undefined;
        setVersion((before) => before + 1);
      }, DRAW_MS);
    });
    return () => {
      window.clearTimeout(timer);
      stop();
    };
  }, [made]);
  return { rows: made?.view.rows ?? [], version, wrong: wrongFilter.ok ? "" : wrongFilter.message };
}
