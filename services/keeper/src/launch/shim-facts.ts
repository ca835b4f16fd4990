import { constants } from "node:os";
import type { ProcessName } from "../machine/process-name.ts";

type Life = "alive" | "dead" | "unknown";

/** The facts that can be observed about a shim. */
export interface ShimFacts {
  /** Whether a shim has taken over the execution. */
  readonly hasStarted: boolean;
  readonly shim: Life;
  readonly child: ProcessName | null;
  readonly childLife: Life;
  /** "begun" if the program was about to run; otherwise why it could not. */
  readonly status: string;
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
}

/** The state of a launch, according to these facts. */
export type ShimEvaluation =
  /** No shim has taken over the execution. */
  | { readonly kind: "not-launched" }
  | { readonly kind: "wait" }
  | { readonly kind: "runs"; readonly child: ProcessName }
  | { readonly kind: "launch-failed"; readonly message: string }
  /** `exit` is null if the end was not observed. */
  | { readonly kind: "exited"; readonly exit: ShimFacts["exit"] };

const BEGUN = "begun";

/**
 * Decide what happened to a launch. `isLate` is set when a shim that has started must have recorded its name by
 * now.
 */
export function evaluateShim(facts: ShimFacts, isLate: boolean): ShimEvaluation {
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

/** Exit codes of signals for which shells print no message. */
const SILENT_CODES: readonly number[] = [130, 141];

/** Parse a shim's record of an exit: the shell's exit code, then the shell's message about a signal, if any. */
export function parseExit(text: string): ShimFacts["exit"] {
  const [, digits = "", words = ""] = /^(\d+) ?([\s\S]*)/.exec(text.trim()) ?? [];
  if (digits === "") return { code: null, signal: null };
  const code = Number(digits);
  if (code <= 128 || (words === "" && !SILENT_CODES.includes(code))) return { code, signal: null };
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined ? { code, signal: null } : { code: null, signal };
}
