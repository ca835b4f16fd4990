import type { Json } from "../events/events.ts";
import type { MembershipState } from "../states.ts";
import { approvedHardwareIn, completeHardware, hardwareIn, hardwareOf } from "./hardware.ts";
import { hasNewTrouble, missingHardware, type Trouble } from "./hardware-conditions.ts";
import { changeOfReport } from "./info-amounts.ts";

/** Whether to save a report. */
export type ReportDecision =
  /** Save it: it contains something new. */
  | "save"
  /** Skip the report: only amounts differ, within normal fluctuation. */
  | "known"
  /**
   * Save the report, because amounts have changed. If a report with changed amounts was saved within AMOUNTS_REST_MS,
   * skip this one: a later report will be saved.
   */
  | "save-if-rested";

/** What to do with a report, and what to write if it is saved. */
export interface ReportPlan {
  readonly decision: ReportDecision;
  /** Hardware that was approved and is now missing. */
  readonly missing: readonly Trouble[];
  /**
   * The approved hardware to store, if none is stored or if part of it is known for the first time; null to leave it
   * unchanged.
   */
  readonly approved: { readonly [key: string]: Json } | null;
}

/** Decide whether to save a report of a known node. The caller skips reports with an unchanged digest. */
export function weighReport(
  before: {
    readonly membership: MembershipState;
    /** The stored approved hardware; null if there is none. */
    readonly approved: { readonly [key: string]: Json } | null;
    readonly info: { readonly [key: string]: Json } | null;
    /** Previously missing hardware. */
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
    // Always report newly missing hardware, however small the loss or frequent the change.
    decision: hasNewTrouble(missedBefore, missing) ? "save" : decideReport(before.info, info),
    missing,
    approved: isFirst ? hardwareIn(approved ?? info) : approved === kept ? null : approved,
  };
}

function decideReport(before: Json, info: Json): ReportDecision {
  switch (changeOfReport(before, info)) {
    case "facts":
    // The digests differ, so save the report although no difference was found.
    case "none":
      return "save";
    case "jitter":
      return "known";
    case "amounts":
      return "save-if-rested";
  }
}
