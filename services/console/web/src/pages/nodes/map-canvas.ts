import { CELLS, type Cell, cellOf } from "../../state/nodes/fleet-map.ts";
import type { NodeRow } from "../../state/nodes/node-row.ts";

export const CELL_PX = 12;
const GAP_PX = 2;
export const STEP_PX = CELL_PX + GAP_PX;

export type CellColors = Readonly<Record<Cell, string>>;

/** What a canvas shows, so that the next frame draws only the differences. */
export interface Painted {
  readonly widthPx: number;
  readonly heightPx: number;
  readonly scale: number;
  readonly colors: CellColors;
  readonly cells: readonly Cell[];
}

/** The number of cells in each line of a map with this width. */
export function columnsOf(widthPx: number): number {
  return Math.max(1, Math.floor(widthPx / STEP_PX));
}

/** Read the colours of cells in an element's theme. The canvas needs plain colours, and parses each one it is given. */
export function readColors(element: HTMLElement): CellColors {
  const probe = document.createElement("span");
  element.append(probe);
  const colorOf = (cell: Cell) => {
    probe.style.color = `var(--${CELLS[cell]})`;
    return getComputedStyle(probe).color;
  };
  const colors: CellColors = {
    unhealthy: colorOf("unhealthy"),
    unknown: colorOf("unknown"),
    "not approved": colorOf("not approved"),
    held: colorOf("held"),
    healthy: colorOf("healthy"),
  };
  probe.remove();
  return colors;
}

/** Draw a cell for each row. Where the canvas already shows the same cell, nothing is drawn. */
export function paintCells(
  canvas: HTMLCanvasElement,
  rows: readonly NodeRow[],
  frame: Omit<Painted, "cells">,
  before: Painted | null,
): Painted {
  const painted = { ...frame, cells: rows.map(cellOf) };
  const drawing = canvas.getContext("2d");
  if (drawing === null) return painted;
  const { widthPx, heightPx, scale, colors } = frame;
  const isSameFrame =
    before?.widthPx === widthPx && before.heightPx === heightPx && before.scale === scale && before.colors === colors;
  if (!isSameFrame) {
    // A new size also clears the canvas and resets its scale.
    canvas.width = widthPx * scale;
    canvas.height = heightPx * scale;
    drawing.scale(scale, scale);
  }
  const shown = isSameFrame ? before.cells : [];
  const columns = columnsOf(widthPx);
  for (let at = 0; at < Math.max(painted.cells.length, shown.length); at += 1) {
    const cell = painted.cells[at];
    if (cell === shown[at]) continue;
    const [x, y] = [(at % columns) * STEP_PX, Math.floor(at / columns) * STEP_PX];
    if (cell === undefined) {
      drawing.clearRect(x, y, CELL_PX, CELL_PX);
      continue;
    }
    drawing.fillStyle = colors[cell];
    drawing.fillRect(x, y, CELL_PX, CELL_PX);
  }
  return painted;
}
