// Export this for the keeper, which does not import the domain.
export { canUseSecret } from "@rollcall/domain";
export { EncodedItems, isBinaryCall } from "./encoded-items.ts";
export {
  connectionStateFromProto,
  healthStateFromProto,
  healthStateToProto,
  holdKindToProto,
  membershipStateFromProto,
  membershipStateToProto,
  nodeTypeFromProto,
  nodeTypeToProto,
  schedulingStateFromProto,
  schedulingStateToProto,
} from "./enums.ts";
export { eventToProto } from "./event.ts";
export { encodeFast } from "./fast-encoder.ts";
export { jobTypeFromProto, toJobDraft } from "./jobs/job-draft.ts";
export { executionSpecOf, isSameJob, jobFromText, jobToText, recheckedJobOf, violationsText } from "./jobs/job-text.ts";
export { FrameReader, frameMessage, MOST_FRAME_BYTES } from "./length-framing.ts";
export { type AllocatedFacts, type NodeFacts, nodeToProto, nodeWithWork } from "./node.ts";
export {
  MOST_NODE_INFO_BYTES,
  type NodeInfoRow,
  nodeInfoDigest,
  nodeInfoToRow,
  nodeInfoViolations,
} from "./node-info.ts";
export { type Page, readPage, readRows } from "./page.ts";
export { parseReadMask, type ReadMask } from "./read-mask.ts";
export { connectionToProto, healthToProto, labelsToProto, membershipToProto, schedulingToProto } from "./states.ts";
