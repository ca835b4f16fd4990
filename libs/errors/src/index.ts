export { isStoreUnavailable, mapError, StoreUnavailableError } from "./error-mapping.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  type DecidedRefusal,
  type FieldViolation,
  RefusalError,
  refusalError,
  refuse,
  refuseFields,
} from "./refusal-error.ts";
export { describeError, type ErrorDescription, isCallersFault, reasonOf, toConnectError } from "./wire-error.ts";
