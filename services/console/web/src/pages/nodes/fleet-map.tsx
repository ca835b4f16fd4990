import { type MouseEvent, memo, type RefObject, useEffect, useMemo, useRef, useState } from "react";
import { goTo, useSearch, useSetSearch } from "../../app/address.ts";
import { nodePath } from "../../app/link.tsx";
import { theme } from "../../app/theme.ts";
import { CELLS, type Cell, cellOf, type MapGroup, mapGroups, mapLabels } from "../../state/nodes/fleet-map.ts";
import { formatCount } from "../../state/units.ts";
import { Choice } from "../../ui/field.tsx";
import { Shape } from "../../ui/state-mark.tsx";
import { type CellColors, columnsOf, type Painted, paintCells, readColors, STEP_PX } from "./map-canvas.ts";
import type { NodesView } from "./use-nodes-view.ts";

const MOST_LABELS = 30;
/** Maximum number of groups to draw. A label with more values, such as a serial number, does not name a place. */
const MOST_GROUPS = 200;
const NAMES = Object.keys(CELLS) as readonly Cell[];

/** The nodes of a view as a map: one cell per node, grouped by a label such as the zone or the rack. */
export function FleetMap({ view }: { readonly view: NodesView }) {
  const search = useSearch();
  const setSearch = useSetSearch();
  const labels = useMemo(() => mapLabels(view.rows, MOST_LABELS), [view]);
  const label = search.by ?? labels.find((key) => key === "zone" || key === "rack") ?? labels[0] ?? "zone";
  const groups = useMemo(() => mapGroups(view.rows, label), [view, label]);
  const options = [...new Set([label, ...labels])].map((key) => [key, key] as const);
  const map = useRef<HTMLDivElement>(null);
  const colors = useColors(map);
  return (
    <div ref={map} className="fleet-map stack" data-testid="fleet-map">
      <Choice label="Group by label" value={label} onChange={(by) => setSearch({ by })} options={options} />
      {groups.slice(0, MOST_GROUPS).map((group) => (
        <Group key={group.value ?? ""} label={label} group={group} colors={colors} />
      ))}
      {groups.length > MOST_GROUPS && (
        <p className="soft small">
          The label has {formatCount(groups.length)} values; {MOST_GROUPS} are shown.
        </p>
      )}
    </div>
  );
}

/** The colours of cells in the current theme; null before the first frame. */
function useColors(map: RefObject<HTMLElement | null>): CellColors | null {
  const [colors, setColors] = useState<CellColors | null>(null);
  useEffect(() => {
    const read = () => map.current !== null && setColors(readColors(map.current));
    read();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", read);
    const stop = theme.subscribe(read);
    return () => {
      dark.removeEventListener("change", read);
      stop();
    };
  }, [map]);
  return colors;
}

interface GroupProps {
  readonly label: string;
  readonly group: MapGroup;
  readonly colors: CellColors | null;
}

/** One group. It is rendered again only if its nodes have changed, because most changes are in few groups. */
const Group = memo(DrawnGroup, (before: GroupProps, after: GroupProps) => {
  const [old, now] = [before.group, after.group];
  const isSame = before.label === after.label && before.colors === after.colors && old.value === now.value;
  return isSame && old.rows.length === now.rows.length && old.rows.every((row, at) => row === now.rows[at]);
});

function DrawnGroup({ label, group: { value, rows, counts }, colors }: GroupProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const painted = useRef<Painted | null>(null);
  const [widthPx, setWidthPx] = useState(0);
  const [title, setTitle] = useState("");
  const columns = columnsOf(widthPx);
  const heightPx = Math.ceil(rows.length / columns) * STEP_PX;
  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (element === null || element === undefined) return;
    const resized = new ResizeObserver(() => setWidthPx(element.clientWidth));
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  useEffect(() => {
    if (canvas.current === null || colors === null || widthPx === 0) return;
    const frame = { widthPx, heightPx, scale: window.devicePixelRatio, colors };
    painted.current = paintCells(canvas.current, rows, frame, painted.current);
  }, [rows, colors, widthPx, heightPx]);
  const rowAt = ({ nativeEvent: { offsetX, offsetY } }: MouseEvent) => {
    const column = Math.floor(offsetX / STEP_PX);
    return column < columns ? rows[Math.floor(offsetY / STEP_PX) * columns + column] : undefined;
  };
  const name = value === null ? `without ${label}` : `${label} ${value}`;
  const shown = NAMES.filter((cell) => counts[cell] > 0);
  const words = shown.map((cell) => `${formatCount(counts[cell])} ${cell}`).join(", ");
  return (
    <section aria-label={name}>
      <h3 className="row small">
        <span className="breaks">{name}</span>
        {shown.map((cell) => (
          <span key={cell} className="state soft">
            <Shape tone={CELLS[cell]} size={8} /> {formatCount(counts[cell])} {cell}
          </span>
        ))}
      </h3>
      <div>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${name}: ${words}`}
          title={title}
          style={{ width: "100%", height: heightPx, display: "block" }}
          onMouseMove={(event) => {
            const row = rowAt(event);
            setTitle(row === undefined ? "" : `${row.id}: ${cellOf(row)}`);
          }}
          onClick={(event) => {
            const row = rowAt(event);
            if (row !== undefined) goTo(nodePath(row.id));
          }}
        />
      </div>
    </section>
  );
}
