import type { ReactNode } from "react";
import { percentOf } from "../state/units.ts";
import { type Tone, toneOf } from "../state/words.ts";
import { Shape } from "./state-mark.tsx";

/** How much of a whole is taken. */
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

/** How much of each thing is given away: its name, how much, of what, and how to write both. */
export function GivenFacts({
  of,
  children,
}: {
  readonly of: readonly (readonly [name: string, part: number, whole: number, format: (value: number) => string])[];
  readonly children?: ReactNode;
}) {
  return (
    <dl className="facts">
      {of.map(([name, part, whole, format]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          {whole === 0 && part === 0 ? (
            <dd className="soft">none</dd>
          ) : (
            <dd className="stack tight">
              <span className="number">
                {format(part)} of {format(whole)} given
              </span>
              <Meter part={part} whole={whole} label={`${name} given`} />
            </dd>
          )}
        </div>
      ))}
      {children}
    </dl>
  );
}

/** Counts by state as one bar with its legend. */
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

/** A line of values, the last one at the right. */
export function Sparkline({
  values,
  label,
  tone = "good",
}: {
  readonly values: readonly number[];
  readonly label: string;
  readonly tone?: Tone;
}) {
  const most = Math.max(1, ...values);
  const step = 100 / Math.max(1, values.length - 1);
  const points = values.map((value, at) => `${(at * step).toFixed(2)},${(38 - (value / most) * 36).toFixed(2)}`);
  const [first = "0,38"] = points;
  const line = points.length > 1 ? points.join(" ") : `${first} 100,${first.split(",")[1]}`;
  return (
    <svg className={`spark tone-${tone}`} viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={label}>
      {values.length > 0 && (
        <>
          <polygon points={`0,40 ${line} 100,40`} fill="currentColor" opacity="0.12" />
          <polyline
            points={line}
            fill="none"
            stroke="currentColor"
            strokeWidth="1.5"
            vectorEffect="non-scaling-stroke"
          />
        </>
      )}
    </svg>
  );
}
