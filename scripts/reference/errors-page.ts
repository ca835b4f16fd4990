import { ADVICE, ADVICE_BY_CODE } from "./error-advice.ts";
import { cell, code, page, table } from "./markdown.ts";
import { PART, readSchema, type SchemaFile } from "./schema.ts";

const PREFACE = `# Errors

Generated from \`proto/rollcall/node/v1/error_reason.proto\` by \`make gen\`; do not edit.

Every call that fails carries a \`google.rpc.ErrorInfo\` of the domain \`rollcall.io\`. Test its \`reason\`, which is one of
the words below and does not change; the message is for people and can change. The values in the message are also in
\`metadata\`. Temporary errors carry \`RetryInfo\`, and malformed requests a \`BadRequest\` with every violation. The command
line prints the message and the command that helps.
`;

const PREFIX = "ERROR_REASON_";

/** One value of the enum ErrorReason. */
interface DocumentedReason {
  readonly name: string;
  readonly code: string;
  readonly when: string;
  readonly advice: string;
}

/** docs/reference/errors.md: every reason with its code, when it is sent, and what to do. */
export async function errorsPage(): Promise<string> {
  const rows = documentedReasons(await readSchema()).map((reason) => [
    code(reason.name),
    reason.code,
    cell(reason.when),
    cell(reason.advice),
  ]);
  const codes = Object.entries(ADVICE_BY_CODE).map(([name, advice]) => [name, cell(advice)]);
  return page(
    PREFACE,
    "## By reason",
    "",
    ...table(["reason", "code", "when", "what to do"], rows),
    "## By code",
    "",
    "For reasons that a newer release adds, and for programs that only read the code:",
    "",
    ...table(["code", "what to do"], codes),
  );
}

/** The reasons of the schema, in its order. Throws if one has no advice or its comment has no code. */
function documentedReasons(files: readonly SchemaFile[]): readonly DocumentedReason[] {
  for (const source of files) {
    const at = source.file.enumType.findIndex(({ name }) => name === "ErrorReason");
    const values = source.file.enumType[at]?.value ?? [];
    if (values.length > 0) {
      return values.flatMap(({ name, number }, index) =>
        number === 0 ? [] : [documented(name.slice(PREFIX.length), source.comment(PART.enum, at, PART.value, index))],
      );
    }
  }
  throw new Error("the schema has no enum ErrorReason");
}

function documented(name: string, comment: string): DocumentedReason {
  const [, grpcCode = "", when = ""] = /^\[(\w+)\]\s*([\s\S]*)$/.exec(comment) ?? [];
  const advice = ADVICE[name];
  if (advice === undefined) throw new Error(`ADVICE in scripts/reference/error-advice.ts lacks ${name}`);
  if (!(grpcCode in ADVICE_BY_CODE)) throw new Error(`the comment of ${name} does not start with a code: ${comment}`);
  return { name, code: grpcCode, when, advice };
}
