import { useEffect, useRef } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { UsageSeries } from "../state/usage-series.ts";

const COLOURS = ["--accent", "--good", "--warn", "--bad"] as const;
const HEIGHT_PX = 180;

/** A chart of lines over time. It is drawn again with each sample, and never made again for one. */
export function Chart({
  series,
  lines,
  unit,
  max,
}: {
  readonly series: UsageSeries;
  readonly lines: readonly string[];
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
    const made = new UPlot(
      {
        width: element.clientWidth,
        height: HEIGHT_PX,
        scales: max === undefined ? {} : { y: { range: [0, max] } },
        axes: [axis, { ...axis, size: 44 }],
        cursor: { drag: { x: false, y: false } },
        series: [
          {},
          ...names.split(" ").map((name, at) => ({
            label: name.replace("-", " "),
            stroke: () => colour(COLOURS[at % COLOURS.length] ?? "--accent"),
            width: 1.5,
            points: { show: false },
            value: (_: UPlot, value: number | null) => (value === null ? "-" : `${value.toFixed(1)}`),
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
  const last = names.split(" ").map((name) => `${name} ${series.lines[name]?.at(-1)?.toFixed(0) ?? "-"}`);
  return <div ref={place} role="img" aria-label={`${last.join(", ")} (${unit})`} />;
}
