import type { Json } from "../events/events.ts";
import type { MembershipState } from "../states.ts";
import { approvedHardwareIn, completeHardware, hardwareIn, hardwareOf } from "./hardware.ts";
import { hasNewTrouble, missingHardware, type Trouble } from "./hardware-conditions.ts";
import { changeOfReport } from "./info-amounts.ts";

/** Whether a report is saved. */
export type ReportVerdict =
  /** It says something new. */
  | "save"
  /** It differs in what moves by itself alone. */
  | "known"
  /** Amounts have moved: save it unless they did within AMOUNTS_REST_MS, when the next report will do. */
  | "save-if-rested";

/** What is done with a report, and what is written beside it if it is saved. */
export interface ReportPlan {
  readonly verdict: ReportVerdict;
  /** What is missing of the approved hardware. */
  readonly missing: readonly Trouble[];
  /**
   * The approved hardware to keep, where none was kept yet or some of it is known for the first time; null to leave it
   * as it is.
   */
  readonly approved: { readonly [key: string]: Json } | null;
}

/** Decide what a report of a known node is worth. Reports of the same digest are not asked about. */
export function weighReport(
  before: {
    readonly membership: MembershipState;
    /** As it was kept; null where none was. */
    readonly approved: { readonly [key: string]: Json } | null;
    readonly info: { readonly [key: string]: Json } | null;
    /** What was missing of it. */
    readonly missing: readonly Trouble[];
  },
  info: { readonly [key: string]: Json },
): ReportPlan {
  const kept = approvedHardwareIn(before);
  const approved = kept === null ? null : completeHardware(kept, info);
  const baseline = hardwareOf(approved ?? undefined);
  const missing = missingHardware(baseline, hardwareOf(info), before.missing);
  const missedBefore = missingHardware(baseline, hardwareOf(before.info ?? undefined), before.missing);
  const isFirst = before.approved === null && before.membership === "APPROVED";
  return {
    // A loss is reported at once, however little or often it moves.
    verdict: hasNewTrouble(missedBefore, missing) ? "save" : verdictOf(before.info, info),
    missing,
    approved: isFirst ? hardwareIn(approved ?? info) : approved === kept ? null : approved,
  };
}

function verdictOf(before: Json, info: Json): ReportVerdict {
  switch (changeOfReport(before, info)) {
    case "facts":
    // Their digests differ, or it would not be asked about.
    case "none":
      return "save";
    case "jitter":
      return "known";
    case "amounts":
      return "save-if-rested";
  }
}
