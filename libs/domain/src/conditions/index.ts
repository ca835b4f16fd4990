export { type HoldCauses, holdsFor, isRebootOver, REBOOT_SHOWN_MS } from "./condition-holds.ts";
export {
  afterGpuSample,
  type GpuReading,
  type GpuState,
  gpusInTrouble,
  gpuTroubles,
  HYSTERESIS_CELSIUS,
  SAMPLES_TO_CONVINCE,
} from "./gpu-conditions.ts";
export {
  approvedHardwareIn,
  type Hardware,
  type HardwareGpu,
  hardwareFacts,
  hardwareIn,
  hardwareOf,
} from "./hardware.ts";
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
} from "./hardware-conditions.ts";
export {
  AMOUNTS_REST_MS,
  type Amounts,
  changeOfReport,
  isJitter,
  type ReportChange,
  SteadyAmounts,
} from "./info-amounts.ts";
export {
  labelsEvent,
  type NewsOfNode,
  type NodeBeforeReport,
  nodeInfoEvents,
} from "./info-events.ts";
export { type ReportPlan, type ReportVerdict, weighReport } from "./report-plan.ts";
