import { constants } from "node:os";
import type { ProcessName } from "../machine/process-name.ts";

type Life = "alive" | "dead" | "unknown";

/** What can be seen of a shim. */
export interface ShimFacts {
  /** Whether a shim has taken the execution on. */
  readonly hasStarted: boolean;
  readonly shim: Life;
  readonly child: ProcessName | null;
  readonly childLife: Life;
  /** "begun" when the program was about to run; else why it was not. */
  readonly status: string;
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
}

/** What follows from it. */
export type ShimVerdict =
  /** No shim has taken it on. */
  | { readonly kind: "not-launched" }
  | { readonly kind: "wait" }
  | { readonly kind: "runs"; readonly child: ProcessName }
  | { readonly kind: "launch-failed"; readonly message: string }
  /** Null when how it ended was not seen. */
  | { readonly kind: "exited"; readonly exit: ShimFacts["exit"] };

const BEGUN = "begun";

/** Decide what happened to a launch. `isLate` when a shim that began has had its time to name itself. */
export function judgeShim(facts: ShimFacts, isLate: boolean): ShimVerdict {
  const { hasStarted, shim, child, childLife, status, exit } = facts;
  if (exit !== null) {
    if (status === BEGUN) return { kind: "exited", exit };
    return { kind: "launch-failed", message: status === "" ? `its launch ended with code ${exit.code}` : status };
  }
  if (!hasStarted) return { kind: "not-launched" };
  if (child !== null && childLife === "alive") return status === BEGUN ? { kind: "runs", child } : { kind: "wait" };
  if (shim === "alive" || (shim === "unknown" && !isLate)) return { kind: "wait" };
  return { kind: "exited", exit: null };
}

/** Signals of which shells say nothing, as shells number them. */
const SILENT_CODES: readonly number[] = [130, 141];

/** Read what a shim wrote down: the shell's code, then the words that it says about signals. */
export function parseExit(text: string): ShimFacts["exit"] {
  const [, digits = "", words = ""] = /^(\d+) ?([\s\S]*)/.exec(text.trim()) ?? [];
  if (digits === "") return { code: null, signal: null };
  const code = Number(digits);
  if (code <= 128 || (words === "" && !SILENT_CODES.includes(code))) return { code, signal: null };
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}
