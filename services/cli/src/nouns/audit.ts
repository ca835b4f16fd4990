import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AuditEntry,
  type AuditHead,
  type AuditProblem,
  AuditProblemKind,
  AuditService,
  ListAuditEntriesResponseSchema,
  type VerifyAuditLogRequestSchema,
  type VerifyAuditLogResponse,
  VerifyAuditLogResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import type { Command } from "commander";
import { parseHead } from "../audit/audit-verbs.ts";
import { PagedActorNames } from "../client/actor-names.ts";
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes, loaded } from "../command.ts";
import { Exit, parseCount, parseMoment } from "../failure.ts";
import { withFailureCode } from "../failure-code.ts";
import type { Verb } from "../invocation.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { isWide, type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, optionalCell, reasonCell, shortTimeCell, timeCell } from "../output/table.ts";
import { counted } from "../output/text.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `audit`. */
export function defineAudit(audit: Command, shell: Shell): void {
  const list = audit
    .command("list")
    .description("List the audit log, newest entries first")
    .option("--actor <actor>", 'Only calls by this actor: "token:<id>", "user:<subject>", "node:<id>"')
    .option("--method <method>", "Only calls of this method, for example ApproveNode")
    .option("--target <target>", "Only calls about exactly this target, for example a node id")
    .option("--outcome <outcome>", "Only this outcome: OK, or a reason such as ROLE_TOO_LOW")
    .option("--since <time>", "Only entries since then: a duration ago such as 1h, or a time")
    .option("--until <time>", "Only entries before then: a duration ago, or a time")
    .option("--oldest-first", "Print the oldest entries first");
  addListingOptions(addLimit(list, "entries", DEFAULT_LIMIT)).action(action(shell, auditList));
  addNotes(
    list,
    "Times are RFC 3339, such as 2026-05-01T12:00:00Z, or a day in UTC such as 2026-05-01.",
    '-o json|yaml prints a rollcall.admin.v1.ListAuditEntriesResponse in proto JSON: {"entries": [...], ' +
      '"nextPageToken": "..."}.',
  );
  const verify = audit
    .command("verify")
    .description("Verify that no entry was changed, removed or added by hand")
    .option("--expect-head <seq:hash>", "Head that an earlier verify printed: it must still be in the log")
    .action(action(shell, auditVerify));
  addNotes(
    verify,
    "Exits with 1 when the log is broken; the error names the first broken entry. Exits with 3 when the log could " +
      "not be verified. An attacker who can write to the whole database can also rewrite the whole log: keep the " +
      "printed head somewhere else, and pass it to --expect-head the next time.",
    "-o json|yaml prints a rollcall.admin.v1.VerifyAuditLogResponse.",
  );
  defineRetention(audit, shell);
}

/** Define the verbs that move the oldest entries out of the log. */
function defineRetention(audit: Command, shell: Shell): void {
  const exported = audit
    .command("export")
    .description("Write the audit log as JSON Lines, oldest entries first")
    .option("--after <sequence>", "Only entries after this one, the last of an earlier export")
    .action(
      action(
        shell,
        loaded(async () => (await import("../audit/audit-verbs.ts")).auditExport),
      ),
    );
  addNotes(
    exported,
    "Each line is a rollcall.admin.v1.AuditEntry in proto JSON. Each entry is checked against the hash of " +
      "the previous one. The last line of standard error is the head of the export, for `rollcall audit prune`.",
  );
  const prune = audit
    .command("prune")
    .description("Remove the oldest entries after they were exported")
    .requiredOption("--through <seq:hash>", "Last entry to remove, as printed by `rollcall audit export`");
  addChangeOptions(prune).action(
    action(
      shell,
      loaded(async () => (await import("../audit/audit-verbs.ts")).auditPrune),
    ),
  );
  addNotes(
    prune,
    "The server checks that the entry has this hash, so that only exported entries are removed. It stores a signed " +
      "record of where the log was cut, from which `rollcall audit verify` continues. Keep the export: it is the " +
      "only copy.",
  );
}

const DEFAULT_LIMIT = "100";

interface AuditListOptions extends ListingOptions {
  readonly actor?: string;
  readonly method?: string;
  readonly target?: string;
  readonly outcome?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly oldestFirst?: boolean;
}

const auditList: Verb<AuditListOptions> = async (invocation) => {
  const { shell, options } = invocation;
  const filter = parseFilter(options, shell.wallMs());
  const limit = parseCount("limit", options.limit ?? DEFAULT_LIMIT, 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const names = new PagedActorNames(control);
  await printListing(invocation, {
    columns: columnsWith(names, isWide(options), shell.wallMs()),
    nameOf: ({ sequence }: AuditEntry) => String(sequence),
    pages: readPages(
      (part) => control.attempt("admin", "list the audit log", () => client.listAuditEntries({ ...filter, ...part })),
      { limit, countOf: ({ entries }) => entries.length },
    ),
    itemsOf: async ({ entries }) => {
      await names.learn(entries.map(({ actor }) => actor));
      return entries;
    },
    whole: (pages) => {
      const answer = create(ListAuditEntriesResponseSchema, { nextPageToken: pages.at(-1)?.nextPageToken ?? "" });
      answer.entries = pages.flatMap(({ entries }) => entries);
      return toPlain(ListAuditEntriesResponseSchema, answer);
    },
  });
};

function parseFilter(options: AuditListOptions, nowMs: number) {
  const { actor = "", method = "", target = "", outcome = "", since, until } = options;
  return {
    actor,
    method,
    target,
    // The table shows reasons as words.
    outcome: outcome.toUpperCase().replaceAll(/[ -]/g, "_"),
    orderBy: options.oldestFirst ? "sequence" : "sequence desc",
    ...(since === undefined ? {} : { fromTime: timestampFromMs(parseMoment("since", since, nowMs)) }),
    ...(until === undefined ? {} : { untilTime: timestampFromMs(parseMoment("until", until, nowMs)) }),
  };
}

/** Create the columns. They show actors by name, and in wide tables by id. */
const columnsWith = (names: PagedActorNames, wide: boolean, nowMs: number): readonly Column<AuditEntry>[] => [
  { title: "SEQ", name: "sequence", rank: 4, cell: ({ sequence }) => ({ text: String(sequence) }) },
  { title: "TIME", name: "time", cell: ({ time }) => timeCell(time), short: ({ time }) => shortTimeCell(time, nowMs) },
  { title: "ACTOR", name: "actor", limit: 24, cell: ({ actor }) => names.cell(actor, wide) },
  {
    title: "METHOD",
    name: "method",
    // Show only the method's name, which is clear without the service.
    cell: ({ method }) => ({ text: method.split("/").at(-1) ?? method, raw: method }),
  },
  { title: "TARGET", name: "target", limit: 32, rank: 1, cell: ({ target }) => optionalCell(target) },
  {
    title: "OUTCOME",
    name: "outcome",
    rank: 2,
    cell: ({ outcome }) => ({
      ...reasonCell(outcome),
      style: outcome === "OK" ? "plain" : "bad",
    }),
  },
  { title: "ADDRESS", name: "address", rank: 5, cell: ({ address }) => optionalCell(address) },
  { title: "REASON", name: "reason", limit: 40, rank: 3, cell: ({ reason }) => optionalCell(reason) },
  // Show the request's id, which the user can search for in the server's log.
  { title: "REQUEST", name: "request_id", wide: true, cell: ({ requestId }) => optionalCell(requestId) },
];

interface AuditVerifyOptions {
  readonly expectHead?: string;
}

/** The exit codes of `audit verify`. They distinguish a log that is not intact from a log that could not be read. */
const BROKEN = 1;
const NOT_VERIFIED = 3;

const auditVerify: Verb<AuditVerifyOptions> = withFailureCode(NOT_VERIFIED, async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const expected = options.expectHead === undefined ? null : parseHead("expect-head", options.expectHead);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const result = await verifyAll(
    (request) => control.attempt("admin", "verify the audit log", () => client.verifyAuditLog(request)),
    expected,
  );
  if (format !== "table") await writePlain(shell, format, toPlain(VerifyAuditLogResponseSchema, result));
  const { problem, checked, head, cut } = result;
  if (problem !== undefined) throw broken(problem, checked);
  if (format !== "table" || head === undefined) return;
  const known = expected === null ? "" : `, and entry ${expected.sequence} is as expected`;
  shell.out.write(
    `The audit log is intact: ${counted(checked, "entry", "entries")}${known}.\n` +
      (cut?.head === undefined
        ? ""
        : `It begins after ${cut.head.sequence}:${cut.head.hash}, signature ${cut.seal}\n`) +
      `Head: ${head.sequence}:${head.hash}\n` +
      "Store the head elsewhere: with --expect-head, a later verify shows that the log was not rewritten since.\n",
  );
});

function broken({ sequence, kind, message }: AuditProblem, checked: bigint): Exit {
  const sound =
    kind === AuditProblemKind.EXPECTED_HEAD_DIFFERS
      ? "the chain itself does not show where it was changed"
      : `the ${counted(checked, "entry before it is", "entries before it are")} intact`;
  return new Exit(
    BROKEN,
    `the audit log is broken at entry ${sequence}: ${message}\n` +
      `${sound}; compare the log with the events, the servers' logs and a backup`,
  );
}

/** The request of one call of VerifyAuditLog. */
type PieceRequest = MessageInitShape<typeof VerifyAuditLogRequestSchema>;

/** Check the whole log, piece by piece. Returns the last response, with the entries of all pieces counted. */
export async function verifyAll(
  check: (request: PieceRequest) => Promise<VerifyAuditLogResponse>,
  expectedHead: AuditHead | null,
): Promise<VerifyAuditLogResponse> {
  const expected = expectedHead === null ? {} : { expectedHead };
  let after: AuditHead | undefined;
  let checked = 0n;
  for (;;) {
    const piece = await check({ ...expected, ...(after === undefined ? {} : { after }) });
    checked += piece.checked;
    after = piece.through;
    if (piece.complete || piece.problem !== undefined || after === undefined) return { ...piece, checked };
  }
}
