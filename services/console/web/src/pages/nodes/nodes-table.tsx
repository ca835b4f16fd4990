// biome-ignore-all lint/a11y/useSemanticElements: a table element cannot omit rows that are not visible.
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type MouseEvent,
  memo,
  type RefObject,
  useEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
} from "react";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import type { OrderBy } from "../../state/nodes/sorted-view.ts";
import type { NodeColumn, Usage } from "./columns.tsx";
import type { NodesView } from "./use-nodes-view.ts";
import { useUsage } from "./use-usage.ts";

const ROW_PX = 36;
/** Number of rows from the end at which to load more. */
const NEAR_END = 200;
const NEVER_WATCHED: readonly string[] = [];
/** Column widths at which the first three columns fit a narrow screen. */
const NARROW_PX: Readonly<Record<string, number>> = { id: 104, approval: 102, health: 102 };
const narrow = window.matchMedia("(max-width: 640px)");
const LIVE_COLUMNS = ["cpu", "memory-used", "seen"];

function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      narrow.addEventListener("change", listener);
      return () => narrow.removeEventListener("change", listener);
    },
    () => narrow.matches,
  );
}

/** The selected rows, and the row that the keyboard acts on. */
export interface Cursor {
  readonly id: string | null;
  readonly picked: ReadonlySet<string>;
}

/**
 * The rows of a view. Only visible rows are in the document. The table renders when a property changes.
 */
export const NodesTable = memo(function NodesTable({
  view,
  columns,
  order,
  cursor,
  canPick,
  onOrder,
  onCursor,
  onPick,
  canOrder,
  onEnd,
  scroller,
}: {
  readonly view: NodesView;
  readonly columns: readonly NodeColumn[];
  readonly order: { readonly by: OrderBy; readonly reversed: boolean };
  readonly cursor: Cursor;
  readonly canPick: boolean;
  readonly onOrder: (by: OrderBy) => void;
  readonly onCursor: (id: string) => void;
  readonly onPick: (ids: readonly string[], picked: boolean) => void;
  readonly canOrder: (by: OrderBy) => boolean;
  /** Called when the view is at or near the end. */
  readonly onEnd: () => void;
  readonly scroller: RefObject<HTMLDivElement | null>;
}) {
  const { rows } = view;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 3,
    scrollPaddingStart: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  const lastIndex = items.at(-1)?.index ?? 0;
  const { length } = rows;
  // After each loaded page, the end may still be visible.
  useEffect(() => {
    if (lastIndex >= length - NEAR_END) onEnd();
  }, [lastIndex, length, onEnd]);
  const isLive = columns.some(({ name }) => LIVE_COLUMNS.includes(name));
  const usage = useUsage(isLive ? items.flatMap(({ index }) => rows[index]?.id ?? []) : NEVER_WATCHED);
  const lastPick = useRef<string | null>(null);
  useEffect(() => {
    const at = rows.findIndex(({ id }) => id === cursor.id);
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
  }, [cursor.id, rows, virtual]);
  const isNarrow = useNarrow();
  const pickPx = canPick ? (isNarrow ? 36 : 40) : 0;
  const cells = useMemo(() => cellsOf(columns, isNarrow, pickPx), [columns, isNarrow, pickPx]);
  const width = cells.reduce((sum, cell) => sum + cell.widthPx, pickPx);
  // Find the row by id, not by index. Rows change in place before the next render, so an index may refer to
  // another node.
  const pick = (picked: string, event: MouseEvent) => {
    const ends = [lastPick.current, picked].map((end) => rows.findIndex(({ id }) => id === end));
    const isRange = event.shiftKey && !ends.includes(-1);
    const ids = isRange ? rows.slice(Math.min(...ends), Math.max(...ends) + 1).map(({ id }) => id) : [picked];
    lastPick.current = picked;
    onPick(ids, !cursor.picked.has(picked));
  };
  const click = (event: MouseEvent) => {
    // A link that opened a page.
    if (event.defaultPrevented) return;
    const target = event.target as HTMLElement;
    const id = target.closest<HTMLElement>("[data-node]")?.dataset.node;
    if (id === undefined) return;
    if (target.matches("input")) pick(id, event);
    onCursor(id);
  };
  return (
    <div className="nodes-scroll" ref={scroller} data-testid="nodes-scroll">
      <div
        role="table"
        aria-label="Nodes"
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        className="nodes-grid"
        style={{ width }}
      >
        <div role="rowgroup">
          <div role="row" className="nodes-head" tabIndex={-1}>
            {canPick && (
              <div role="columnheader" className="nodes-cell pick stays" style={{ width: pickPx }} tabIndex={-1}>
                <input
                  type="checkbox"
                  aria-label="Select all nodes of this view"
                  checked={rows.length > 0 && cursor.picked.size >= rows.length}
                  onChange={(event) =>
                    onPick(
                      rows.map(({ id }) => id),
                      event.target.checked,
                    )
                  }
                />
              </div>
            )}
            {cells.map(({ column: { name, title, order: by }, className, style }) => {
              return (
                <div
                  key={name}
                  role="columnheader"
                  tabIndex={-1}
                  className={className}
                  style={style}
                  aria-sort={by === order.by ? (order.reversed ? "descending" : "ascending") : undefined}
                >
                  {by === undefined || !canOrder(by) ? (
                    title
                  ) : (
                    <button type="button" onClick={() => onOrder(by)}>
                      {title} {by === order.by ? (order.reversed ? "↓" : "↑") : ""}
                    </button>
                  )}
                </div>
              );
            })}
          </div>
        </div>
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keys j, k and x do the same. */}
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }} onClick={click}>
          {items.map(({ index, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            return (
              <Row
                key={row.id}
                {...{ row, index, cells, width, pickPx }}
                usage={usage.get(row.id)}
                startPx={start}
                isPicked={cursor.picked.has(row.id)}
                isCurrent={row.id === cursor.id}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
});

/** A column with the look of its cells. */
interface Cell {
  readonly column: NodeColumn;
  readonly widthPx: number;
  readonly className: string;
  readonly style: CSSProperties;
}

function cellsOf(columns: readonly NodeColumn[], isNarrow: boolean, pickPx: number): readonly Cell[] {
  return columns.map((column) => {
    const { name, right } = column;
    const widthPx = isNarrow ? (NARROW_PX[name] ?? column.width) : column.width;
    const className = ["nodes-cell", right && "right", name === "id" && "stays"].filter(Boolean).join(" ");
    return { column, widthPx, className, style: name === "id" ? { width: widthPx, left: pickPx } : { width: widthPx } };
  });
}

/** One row. The table handles its clicks, so that scrolling and changes render only the rows that differ. */
const Row = memo(function Row({
  row,
  index,
  cells,
  width,
  pickPx,
  usage,
  startPx,
  isPicked,
  isCurrent,
}: {
  readonly row: NodeRow;
  readonly index: number;
  readonly cells: readonly Cell[];
  readonly width: number;
  /** The width of the cell with the checkbox; 0 if nodes cannot be selected. */
  readonly pickPx: number;
  readonly usage: Usage;
  readonly startPx: number;
  readonly isPicked: boolean;
  readonly isCurrent: boolean;
}) {
  return (
    <div
      role="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      aria-selected={isPicked}
      className={isCurrent ? "nodes-row current" : "nodes-row"}
      data-node={row.id}
      style={{ top: startPx, width }}
    >
      {pickPx > 0 && (
        <div role="cell" className="nodes-cell pick stays" style={{ width: pickPx }}>
          <input type="checkbox" aria-label={`Select ${row.id}`} checked={isPicked} onChange={() => {}} />
        </div>
      )}
      {cells.map(({ column, className, style }) => (
        <div key={column.name} role="cell" className={className} style={style}>
          {column.cell(row, usage)}
        </div>
      ))}
    </div>
  );
});
