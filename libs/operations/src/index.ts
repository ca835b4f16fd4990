export {
  type AnswerCodec,
  auditOf,
  bearerIn,
  type CommitOptions,
  commit,
  messageCodec,
  type Operation,
  type OperationFields,
  readOperation,
} from "./operation.ts";
