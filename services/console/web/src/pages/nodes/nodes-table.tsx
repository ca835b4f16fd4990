// biome-ignore-all lint/a11y/useSemanticElements: only rows in sight are in the page, which no table element knows.
import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, type RefObject, useEffect, useRef } from "react";
import type { NodeRow } from "../../state/nodes/node-row.ts";
import type { OrderBy } from "../../state/nodes/sorted-view.ts";
import type { NodeColumn } from "./columns.tsx";
import { useUsage } from "./use-usage.ts";

const ROW_PX = 36;
const NEVER_WATCHED: readonly string[] = [];
const LIVE_COLUMNS = ["cpu", "memory-used", "seen"];

/** Which rows are chosen, and where the keys are. */
export interface Cursor {
  readonly at: number;
  readonly picked: ReadonlySet<string>;
}

/** The rows of a view; only those in sight are in the page, however many there are. */
export function NodesTable({
  rows,
  columns,
  order,
  cursor,
  canPick,
  onOrder,
  onCursor,
  onPick,
  scroller,
}: {
  readonly rows: readonly NodeRow[];
  readonly columns: readonly NodeColumn[];
  readonly order: { readonly by: OrderBy; readonly reversed: boolean };
  readonly cursor: Cursor;
  readonly canPick: boolean;
  readonly onOrder: (by: OrderBy) => void;
  readonly onCursor: (at: number) => void;
  readonly onPick: (ids: readonly string[], picked: boolean) => void;
  readonly scroller: RefObject<HTMLDivElement | null>;
}) {
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    scrollPaddingStart: ROW_PX,
  });
  const items = virtual.getVirtualItems();
  const isLive = columns.some(({ name }) => LIVE_COLUMNS.includes(name));
  const usage = useUsage(isLive ? items.flatMap(({ index }) => rows[index]?.id ?? []) : NEVER_WATCHED);
  const lastPick = useRef(0);
  useEffect(() => {
    if (cursor.at >= 0) virtual.scrollToIndex(cursor.at, { align: "auto" });
  }, [cursor.at, virtual]);
  const width = columns.reduce((sum, column) => sum + column.width, canPick ? 40 : 0);
  const pick = (index: number, event: MouseEvent) => {
    const [from, to] = event.shiftKey
      ? [Math.min(lastPick.current, index), Math.max(lastPick.current, index)]
      : [index, index];
    lastPick.current = index;
    const ids = rows.slice(from, to + 1).map(({ id }) => id);
    onPick(ids, !cursor.picked.has(rows[index]?.id ?? ""));
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
              <div role="columnheader" className="nodes-cell pick" tabIndex={-1}>
                <input
                  type="checkbox"
                  aria-label="Choose all nodes of this view"
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
            {columns.map(({ name, title, width: px, order: by, right }) => (
              <div
                key={name}
                role="columnheader"
                tabIndex={-1}
                className={right ? "nodes-cell right" : "nodes-cell"}
                style={{ width: px }}
                aria-sort={by === order.by ? (order.reversed ? "descending" : "ascending") : undefined}
              >
                {by === undefined ? (
                  title
                ) : (
                  <button type="button" onClick={() => onOrder(by)}>
                    {title} {by === order.by ? (order.reversed ? "↓" : "↑") : ""}
                  </button>
                )}
              </div>
            ))}
          </div>
        </div>
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map(({ index, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const isPicked = cursor.picked.has(row.id);
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: j, k and x do the same by keys.
              <div
                key={row.id}
                role="row"
                tabIndex={-1}
                aria-rowindex={index + 2}
                aria-selected={isPicked}
                className={index === cursor.at ? "nodes-row current" : "nodes-row"}
                style={{ transform: `translateY(${start}px)`, width }}
                onClick={() => onCursor(index)}
              >
                {canPick && (
                  <div role="cell" className="nodes-cell pick">
                    <input
                      type="checkbox"
                      aria-label={`Choose ${row.id}`}
                      checked={isPicked}
                      onClick={(event) => pick(index, event)}
                      onChange={() => {}}
                    />
                  </div>
                )}
                {columns.map(({ name, width: px, right, cell }) => (
                  <div
                    key={name}
                    role="cell"
                    className={right ? "nodes-cell right" : "nodes-cell"}
                    style={{ width: px }}
                  >
                    {cell(row, usage.get(row.id))}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
