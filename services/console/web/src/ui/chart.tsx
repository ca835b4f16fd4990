import { useEffect, useEffectEvent, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { UsageSeries } from "../state/usage-series.ts";

const COLOURS = ["--accent", "--good", "--warn", "--bad"] as const;
const HEIGHT_PX = 180;
/** Seconds between two times on the axis. */
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300] as const;

/** A line chart over time. New samples redraw it without creating it again. */
export function Chart({
  series,
  lines,
  words = lines.map((name) => name.replace("-", " ")),
  unit,
  max,
}: {
  readonly series: UsageSeries;
  readonly lines: readonly string[];
  /** The names of the lines, in the order of the lines. */
  readonly words?: readonly string[];
  readonly unit: string;
  readonly max?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const names = lines.filter((name) => series.lines[name] !== undefined).join(" ");
  const firstData = useEffectEvent(() => dataOf(series, names));
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const colour = (name: string) => getComputedStyle(element).getPropertyValue(name);
    const axis = { stroke: () => colour("--text-soft"), grid: { stroke: () => colour("--line"), width: 1 } };
    const times = { ...axis, space: 80, incrs: [...TIME_STEPS_S], values: (_: UPlot, at: number[]) => at.map(clock) };
    const made = new UPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        scales: max === undefined ? {} : { y: { range: [0, max] } },
        axes: [times, { ...axis, size: 44 }],
        // Use our own legend below the chart, which shows the latest values even without a pointer.
        legend: { show: false },
        cursor: { drag: { x: false, y: false } },
        series: [
          {},
          ...names.split(" ").map((name, at) => ({
            label: name,
            stroke: () => colour(COLOURS[at % COLOURS.length] ?? "--accent"),
            width: 1.5,
            points: { show: false },
          })),
        ],
      },
      firstData(),
      element,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [names, max]);
  useEffect(() => plot.current?.setData(dataOf(series, names)), [series, names]);
  const last = names.split(" ").map((name) => ({
    name: words[lines.indexOf(name)] ?? name,
    text: series.lines[name]?.at(-1)?.toFixed(0) ?? "-",
  }));
  return (
    <figure>
      <div
        ref={place}
        role="img"
        aria-label={`${last.map(({ name, text }) => `${name} ${text}`).join(", ")} (${unit})`}
      />
      <figcaption className="legend">
        {last.map(({ name, text }, at) => (
          <span key={name} className="state">
            <svg width="10" height="10" aria-hidden="true">
              <rect width="10" height="3" y="3.5" fill={`var(${COLOURS[at % COLOURS.length]})`} />
            </svg>
            <span className="soft">{name}</span> <span className="number">{text}</span>
          </span>
        ))}
        <span className="soft">{unit}</span>
      </figcaption>
    </figure>
  );
}

/** The times, and the values of each line. */
function dataOf({ times, lines }: UsageSeries, names: string): UPlot.AlignedData {
  return [times, ...names.split(" ").map((name) => lines[name] ?? [])] as unknown as UPlot.AlignedData;
}

/** "14:05:09" in the user's time zone. */
function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
