import { type ReactNode, useState } from "react";
import { formatCount, percentOf } from "../state/units.ts";
import { type Tone, toneOf } from "../state/words.ts";
import { Shape } from "./state-mark.tsx";

/** A bar that shows a part of a whole. */
function Meter({ part, whole, label }: { readonly part: number; readonly whole: number; readonly label: string }) {
  const percent = percentOf(part, whole);
  return (
    <span
      className={percent >= 90 ? "meter high" : "meter"}
      role="img"
      aria-label={`${label}: ${Math.round(percent)}%`}
    >
      <i style={{ width: `${percent}%` }} />
    </span>
  );
}

/**
 * Shows how much of each resource is allocated: its name, the allocated amount, the whole amount, and how to format
 * both. `whole` is null if unknown.
 */
export function GivenFacts({
  of,
  children,
}: {
  readonly of: readonly (readonly [
    name: string,
    part: number,
    whole: number | null,
    format: (value: number) => string,
  ])[];
  readonly children?: ReactNode;
}) {
  return (
    <dl className="facts">
      {of.map(([name, part, whole, format]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          {whole === null ? (
            <dd className="number">{format(part)} reserved (total unknown)</dd>
          ) : whole === 0 && part === 0 ? (
            <dd className="soft">none</dd>
          ) : (
            <dd className="stack tight">
              <span className="number">
                {format(part)} of {format(whole)} reserved
              </span>
              <Meter part={part} whole={whole} label={`${name} reserved`} />
            </dd>
          )}
        </div>
      ))}
      {children}
    </dl>
  );
}

/** Counts by state as one bar with a legend. */
export function StateBar({
  counts,
  words,
  onChoose,
}: {
  readonly counts: Readonly<Record<string, number>>;
  readonly words: readonly string[];
  readonly onChoose?: (word: string) => void;
}) {
  const shown = words.map((word) => ({ word, count: counts[word] ?? 0, tone: toneOf(word) as Tone }));
  return (
    <div className="stack tight">
      <div className="bar" aria-hidden="true">
        {shown.map(({ word, count, tone }) =>
          count === 0 ? null : <i key={word} className={`tone-${tone}`} style={{ flexGrow: count }} />,
        )}
      </div>
      <div className="row small">
        {shown.map(({ word, count, tone }) => (
          <button key={word} type="button" className="button small plain" onClick={() => onChoose?.(word)}>
            <Shape tone={tone} size={8} />
            <span className="number">{count.toLocaleString("en-US")}</span>
            <span className="soft">{word.toLowerCase()}</span>
          </button>
        ))}
      </div>
    </div>
  );
}

/**
 * A small line chart of counts, the latest at the right, with its scale at the left. Null is a gap. Under the pointer,
 * and with the arrow keys, it shows one value and its time.
 */
export function Sparkline({
  values,
  name,
  whenOf,
  tone = "good",
}: {
  readonly values: readonly (number | null)[];
  readonly name: string;
  /** The text for the time of a value. */
  readonly whenOf: (at: number) => string;
  readonly tone?: Tone;
}) {
  const [at, setAt] = useState<number | null>(null);
  const known = values.filter((value) => value !== null);
  const most = Math.max(1, ...known);
  const last = Math.max(1, values.length - 1);
  const position = (index: number, value: number) => ({ x: (index / last) * 100, y: 38 - (value / most) * 36 });
  const runs = runsOf(values).map((run) => run.map(({ index, value }) => position(index, value)));
  const range =
    known.length === 0 ? "unknown" : `${formatCount(Math.min(...known))} to ${formatCount(Math.max(...known))}`;
  const shown = at === null ? values.length - 1 : Math.min(at, values.length - 1);
  const value = values[shown] ?? null;
  const said = value === null ? "unknown" : formatCount(value);
  const mark = value === null || at === null ? null : position(shown, value);
  return (
    <>
      <div className="spark-frame">
        <span className="spark-scale soft small number" aria-hidden="true">
          <span>{formatCount(most)}</span>
          <span>0</span>
        </span>
        <svg
          className={`spark tone-${tone}`}
          viewBox="0 0 100 40"
          preserveAspectRatio="none"
          role="img"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys show each value.
          tabIndex={0}
          aria-label={`${name}: ${range}`}
          onPointerMove={({ clientX, currentTarget }) => {
            const { left, width } = currentTarget.getBoundingClientRect();
            setAt(Math.max(0, Math.min(last, Math.round(((clientX - left) / Math.max(1, width)) * last))));
          }}
          onPointerLeave={() => setAt(null)}
          onBlur={() => setAt(null)}
          onKeyDown={({ key }) => {
            const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
            if (by !== undefined) setAt(Math.max(0, Math.min(last, shown + by)));
          }}
        >
          {runs.map((run) => {
            const line = pathOf(run);
            return (
              <g key={run[0]?.x}>
                <polygon points={`${run[0]?.x},40 ${line} ${run.at(-1)?.x},40`} fill="currentColor" opacity="0.12" />
                <polyline
                  points={line}
                  fill="none"
                  stroke="currentColor"
                  strokeWidth="1.5"
                  vectorEffect="non-scaling-stroke"
                />
              </g>
            );
          })}
          {mark !== null && (
            <line
              x1={mark.x}
              x2={mark.x}
              y1="0"
              y2="40"
              stroke="currentColor"
              strokeWidth="1"
              vectorEffect="non-scaling-stroke"
            />
          )}
        </svg>
      </div>
      <figcaption className="soft small" aria-live={at === null ? "off" : "polite"}>
        {name}: <span className="number">{said}</span>
        {at !== null && <> at {whenOf(shown)}</>}
      </figcaption>
    </>
  );
}

/** The runs of known values between the gaps. A run of one value is drawn as a short line. */
function runsOf(values: readonly (number | null)[]) {
  const runs: { readonly index: number; readonly value: number }[][] = [];
  let isOpen = false;
  for (const [index, value] of values.entries()) {
    if (value === null) {
      isOpen = false;
      continue;
    }
    if (!isOpen) runs.push([]);
    runs.at(-1)?.push({ index, value });
    isOpen = true;
  }
  return runs;
}

function pathOf(run: readonly { readonly x: number; readonly y: number }[]): string {
  const points =
    run.length === 1
      ? run.flatMap(({ x, y }) => [
          { x, y },
          { x: x + 0.5, y },
        ])
      : run;
  return points.map(({ x, y }) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" ");
}
