// What an agent decides about work, without sockets, clocks and keeper: simulations run it.
export {
  applyExecutions,
  type DesiredWork,
  dropPartial,
  hexOf,
  type KeptWork,
  type MachineWork,
  NOTHING_DESIRED,
  planWork,
  pruneForgotten,
  usefulSpecs,
  type WorkAction,
} from "./desired-work.ts";
export {
  beginReports,
  type ReportEvent,
  type ReportState,
  reportDueMs,
  stepReports,
} from "./report-machine.ts";
export { executionsDigest, reportParts } from "./report-parts.ts";
