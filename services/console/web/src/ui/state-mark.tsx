import { stateWords } from "@rollcall/domain";
import { type Tone, toneOf } from "../state/words.ts";

/** A state with its color and its shape. Either one identifies the state. */
export function StateMark({ word, title }: { readonly word: string; readonly title?: string | undefined }) {
  return (
    <span className="state" title={title}>
      <Shape tone={toneOf(word)} />
      {word === "-" ? "-" : sentence(word)}
    </span>
  );
}

/**
 * The shape of a tone: disc for good, triangle for bad, diamond for attention, ring for absent, half disc for in
 * progress.
 */
export function Shape({ tone, size = 10 }: { readonly tone: Tone; readonly size?: number }) {
  return (
    <svg className={`tone-${tone}`} width={size} height={size} viewBox="0 0 10 10" aria-hidden="true" focusable="false">
      {SHAPES[tone]}
    </svg>
  );
}

const SHAPES = {
  good: <circle cx="5" cy="5" r="4.2" fill="currentColor" />,
  bad: <path d="M5 .6 9.6 9.2H.4Z" fill="currentColor" />,
  warn: <path d="M5 .3 9.7 5 5 9.7.3 5Z" fill="currentColor" />,
  busy: (
    <>
      <circle cx="5" cy="5" r="3.9" fill="none" stroke="currentColor" strokeWidth="1.3" />
      <path d="M5 1.1a3.9 3.9 0 0 1 0 7.8Z" fill="currentColor" />
    </>
  ),
  muted: <circle cx="5" cy="5" r="3.7" fill="none" stroke="currentColor" strokeWidth="1.4" />,
  plain: <rect x="3" y="3" width="4" height="4" rx="1" fill="currentColor" />,
} as const;

/** A reason in words; the API's name of it on hover. */
export function Reason({ of }: { readonly of: string }) {
  return (
    <span className="soft" title={of}>
      {stateWords(of)}
    </span>
  );
}

/** Format "KILLED_OOM" as "Killed: out of memory". */
function sentence(word: string): string {
  const words = stateWords(word);
  return words.charAt(0).toUpperCase() + words.slice(1);
}
