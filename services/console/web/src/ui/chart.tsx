import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { UsageSeries } from "../state/usage-series.ts";

const COLOURS = ["--accent", "--good", "--warn", "--bad"] as const;
const HEIGHT_PX = 180;
/** Seconds between two times on the axis. */
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300] as const;

/** A chart of lines over time. It is drawn again with each sample, and never made again for one. */
export function Chart({
  series,
  lines,
  words = lines.map((name) => name.replace("-", " ")),
  unit,
  max,
}: {
  readonly series: UsageSeries;
  readonly lines: readonly string[];
  /** What each line is called, in the order of the lines. */
  readonly words?: readonly string[];
  readonly unit: string;
  readonly max?: number;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const names = lines.filter((name) => series.lines[name] !== undefined).join(" ");
  const data = useRef<UPlot.AlignedData>([[]]);
  data.current = [
    series.times,
    ...names.split(" ").map((name) => series.lines[name] ?? []),
  ] as unknown as UPlot.AlignedData;
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
        // The one below shows the latest values, and is there without a pointer.
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
      data.current,
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: the data of this series is in the reference.
  useEffect(() => plot.current?.setData(data.current), [series]);
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

/** "14:05:09", in the reader's own time zone. */
function clock(seconds: number): string {
  const date = new Date(seconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
