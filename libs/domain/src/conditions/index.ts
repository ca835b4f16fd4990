export {
  afterGpuSample,
  type GpuReading,
  type GpuState,
  gpusInTrouble,
  gpuTroubles,
  SAMPLES_TO_CONVINCE,
} from "./gpu-conditions.ts";
export {
  approvedHardwareIn,
  ESSENTIAL_FACTS,
  type Hardware,
  hardwareIn,
  hardwareOf,
  RESOURCE_FACTS,
  UNKNOWN_REASONS,
  unknownResources,
} from "./hardware.ts";
export { missingHardware, type Trouble } from "./hardware-conditions.ts";
export { AMOUNTS_REST_MS, type Amounts, SteadyAmounts } from "./info-amounts.ts";
export { labelsEvent, nodeInfoEvents } from "./info-events.ts";
export {
  CONDITION_REASONS,
  conditionsOf,
  describeConditions,
  gravestFirst,
  holdsAfterReport,
  type NodeCondition,
} from "./node-conditions.ts";
export { type ReportPlan, weighReport } from "./report-plan.ts";
