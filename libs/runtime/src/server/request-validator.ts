import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Violation } from "@bufbuild/protovalidate";
import { type FieldViolation, refuse } from "../errors.ts";

/** Checks messages against the rules of their proto files. */
export interface RequestValidator {
  /** Throws INVALID_ARGUMENT, INVALID_REQUEST with every violation, or an error when a rule itself is broken. */
  check<D extends DescMessage>(desc: D, message: MessageShape<D>): void;
}

// A request of the largest size can break rules more often than an error can tell.
const MOST_VIOLATIONS = 50;

/** Create a validator. Rules are compiled on first use and kept: share it between servers. */
export function createRequestValidator(): RequestValidator {
  const validator = createValidator();
  return {
    check: (desc, message) => {
      const result = validator.validate(desc, message);
      if (result.kind === "error") throw result.error;
      if (result.kind === "invalid") throw invalidRequest(result.violations.map(toFieldViolation));
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
