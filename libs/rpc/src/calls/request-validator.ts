import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import type { Interceptor } from "@connectrpc/connect";
import { type FieldViolation, refuse } from "@rollcall/errors";
import { malformedFields } from "./well-formed.ts";

/**
 * Checks messages against the rules in their proto files, and against the rules for all fields: see
 * malformedFields().
 */
export interface RequestValidator {
  /**
   * Check a message. Throws INVALID_ARGUMENT, INVALID_REQUEST with every violation, or an error if a rule
   * is invalid.
   */
  check<D extends DescMessage>(desc: D, message: MessageShape<D>): void;
}

// Maximum number of violations in an error. A request of the maximum size can violate more rules than fit
// into an error.
const MOST_VIOLATIONS = 50;

/** Caches compiled rules. All servers of a process share it. */
const validator = createValidator();

/**
 * Create a validator. A message's rules are compiled when they are first used, which blocks the event loop
 * for about 0.2 s.
 *
 * @param expected messages whose rules to compile immediately.
 */
export function createRequestValidator(expected: Iterable<DescMessage> = []): RequestValidator {
  for (const desc of expected) validator.validate(desc, create(desc));
  return {
    check: (desc, message) => {
      const malformed = malformedFields(desc, message, MOST_VIOLATIONS);
      const result = validator.validate(desc, message);
      // Report the range of a value instead of the failure: evaluation of a rule can fail for a value
      // outside the range of its type.
      if (result.kind === "error" && malformed.length === 0) throw result.error;
      const broken = result.kind === "invalid" ? result.violations.map(toFieldViolation) : [];
      if (malformed.length + broken.length > 0) throw invalidRequest([...malformed, ...broken]);
    },
  };
}

function invalidRequest(all: readonly FieldViolation[]) {
  const violations = all.slice(0, MOST_VIOLATIONS);
  const texts = violations
    .slice(0, 3)
    .map((it) => (it.field === "" ? it.description : `${it.field}: ${it.description}`));
  const more = all.length > texts.length ? ` (and ${all.length - texts.length} more)` : "";
  return refuse("INVALID_REQUEST", `invalid request: ${texts.join("; ")}${more}`, { violations });
}

function toFieldViolation({ field, message, ruleId }: Violation): FieldViolation {
  return { field: pathToString(field), description: message === "" ? ruleId : message };
}

/** Check each message of a call before its handler sees it. */
export function validateRequests(validator: RequestValidator): Interceptor {
  return (next) => async (request) => {
    if (request.stream) {
      return await next({
        ...request,
        message: checked(request.message, request.method.input, validator),
      });
    }
    validator.check(request.method.input, request.message);
    return await next(request);
  };
}

async function* checked<T extends Parameters<RequestValidator["check"]>[1]>(
  messages: AsyncIterable<T>,
  desc: DescMessage,
  validator: RequestValidator,
) {
  for await (const message of messages) {
    validator.check(desc, message);
    yield message;
  }
}
