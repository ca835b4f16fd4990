export { BRAKE_CLUSTER, type BrakeMode, type BrakeState, brakeGroupName, toldCounts } from "./brake.ts";
export { type AllowedReason, brakeCountsText, brakeEvent, reactionsAllowedEvent } from "./brake-events.ts";
export { BRAKE_WINDOW_MS } from "./brake-history.ts";
export {
  type BrakeEffect,
  type BrakeRefusalReason,
  freezeBrake,
  isHeldByFreeze,
  releaseBrake,
} from "./brake-orders.ts";
export type {
  BrakeChange,
  BrakeMarks,
  BrakePlan,
  BrakeReading,
  BrakeRelease,
  BrakeRow,
  GroupLosses,
} from "./brake-plan.ts";
export { BrakePlanner, MOST_BRAKE_GROUPS } from "./brake-planner.ts";
export { type BrakeSums, brakeSumsFromJson, brakeSumsToJson, countedAs, type GroupSum } from "./brake-sums.ts";
export { type Loss, type LossAfter, lossAfterRelease, mayHaveReaction, NO_LOSS, type Reaction } from "./reaction.ts";
export { SHOWN_SETTLED_MS, type ShownBrake, showBrakes, shownMarks } from "./shown-brakes.ts";
