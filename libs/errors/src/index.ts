export { isStoreUnavailable, mapError, StoreUnavailableError } from "./error-mapping.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  type DecidedRefusal,
  describeError,
  type ErrorDescription,
  type FieldViolation,
  isCallersFault,
  reasonOf,
  refusalError,
  refuse,
  refuseFields,
} from "./errors.ts";
