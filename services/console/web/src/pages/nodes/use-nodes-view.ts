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

/** Changes that come together are drawn together, at most so often. */
const DRAW_MS = 120;

/** Follow the nodes of a filter. */
export function useNodesView(filter: NodeFilter, by: OrderBy, reversed: boolean): NodesView {
  const [version, setVersion] = useState(0);
  const wrongFilter = useMemo(() => nodeTest(filter), [filter]);
  const last = useRef<SortedView | null>(null);
  const view = useMemo(() => {
    // A selector that is being typed is wrong half of the time: the view before stays.
    if (!wrongFilter.ok) return last.current;
    return new SortedView(fleet.rows.values(), wrongFilter.test, { by, reversed });
  }, [wrongFilter, by, reversed]);
  last.current = view;
  useEffect(() => {
    if (view === null) return;
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
  }, [view]);
  return { rows: view?.rows ?? [], version, wrong: wrongFilter.ok ? "" : wrongFilter.message };
}
