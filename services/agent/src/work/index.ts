// The agent's decisions about work. They use no sockets, clocks or keeper, so that
// simulations can run them.
export {
  applyExecutions,
  type DesiredWork,
  dropPartial,
  hexOf,
  type LiveWork,
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
