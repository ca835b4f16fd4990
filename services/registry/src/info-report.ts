import type { NodeInfo } from "@rollcall/api/rollcall/node/v1/node_pb";
import { refuseFields } from "@rollcall/errors";
import type { InfoReport } from "@rollcall/store";
import { nodeInfoToRecord, nodeInfoViolations } from "@rollcall/wire";

/** Read what a node says about itself. Throws INVALID_LABEL or INVALID_REQUEST, each with every violation. */
export function parseInfo(info: NodeInfo): InfoReport {
  const report = nodeInfoToRecord(info);
  const { labels, others } = nodeInfoViolations(report);
  if (labels.length > 0) throw refuseFields("INVALID_LABEL", labels);
  if (others.length > 0) throw refuseFields("INVALID_REQUEST", others);
  return report;
}
