export { isStoreUnavailable, mapError, StoreUnavailableError, storeUnavailable } from "./error-mapping.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  type DecidedRefusal,
  describeError,
  ERROR_DOMAIN,
  type ErrorDescription,
  type FieldViolation,
  isCallersFault,
  type RefusalDetails,
  reasonOf,
  refusalError,
  refuse,
  refuseFields,
} from "./errors.ts";
