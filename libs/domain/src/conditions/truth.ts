// What is thought of nodes beyond their heartbeats, and how it is told: a part of index.ts.

export { describeChange, explainEvent, type ToldEvent } from "../events/explain-event.ts";
export {
  type ExplainedNode,
  type Obstacle,
  obstaclesOf,
  summarizeNode,
} from "../health/explain-node.ts";
export {
  afterHealthChange,
  FLAPPING_WINDOW_MS,
  flappingEndedEvent,
  flappingHealth,
  flappingStartedEvent,
  type HealthHistory,
  isSteady,
  MOST_CHANGES,
  withinPast,
} from "../health/flapping.ts";
export { evidenceFacts, type SilenceEvidence, silenceEvidence } from "../health/health-evidence.ts";
export {
  afterGpuSample,
  type GpuReading,
  type GpuState,
  gpusInTrouble,
  gpuTroubles,
  HYSTERESIS_CELSIUS,
  SAMPLES_TO_CONVINCE,
} from "./gpu-truth.ts";
export { type Hardware, type HardwareGpu, hardwareFacts, hardwareOf } from "./hardware.ts";
export {
  describeTroubles,
  hardwareAcceptedEvent,
  hardwareEvent,
  hasNewTrouble,
  isSameTroubles,
  isUnexpectedReboot,
  missingHardware,
  rebootClearedEvent,
  rebootedEvent,
  rebootedHealth,
  type Trouble,
  type TroubleKind,
  troubledHealth,
} from "./hardware-truth.ts";
export { type HoldCauses, holdsFor, isRebootOver, REBOOT_SHOWN_MS } from "./truth-holds.ts";
