export { isStoreUnavailable, mapError, StoreUnavailableError, storeUnavailable } from "./error-mapping.ts";
export { CODE_OF_REASON, type ErrorReasonName, isErrorReasonName } from "./error-table.ts";
export {
  describeError,
  ERROR_DOMAIN,
  type ErrorDescription,
  type FieldViolation,
  isCallersFault,
  type RefusalDetails,
  reasonOf,
  refuse,
} from "./errors.ts";
export { type DecidedRefusal, refusalError, refuseFields } from "./refusals.ts";
