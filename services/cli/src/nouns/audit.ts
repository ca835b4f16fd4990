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
import { reachControlPlane } from "../client/control-plane.ts";
import { action, addChangeOptions, addLimit, addListingOptions, addNotes, loaded, type Verb } from "../command.ts";
import { Exit, parseCount, parseMoment } from "../failure.ts";
import { withFailureCode } from "../failure-code.ts";
import { ANSWER_FORMATS, outputFormat, toPlain, writePlain } from "../output/format.ts";
import { type ListingOptions, printListing, readPages } from "../output/listing.ts";
import { type Column, optionalCell, timeCell } from "../output/table.ts";
import type { Shell } from "../shell.ts";

/** Define the verbs of `audit`. */
export function defineAudit(audit: Command, shell: Shell): void {
  const list = audit
    .command("list")
    .description("List the audit log, the newest entries first")
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
    "Times are RFC 3339, such as 2026-05-01T12:00:00Z, or a day such as 2026-05-01, which begins in UTC.",
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
    .description("Write the audit log as JSON Lines, the oldest entries first")
    .option("--after <sequence>", "Only entries after this one, with which an earlier export ended")
    .action(
      action(
        shell,
        loaded(async () => (await import("../audit/audit-verbs.ts")).auditExport),
      ),
    );
  addNotes(
    exported,
    "Each line is a rollcall.admin.v1.AuditEntry in proto JSON. On the way, each entry is compared with the hash of " +
      "the one before. The last line of standard error tells the head of what was written, for `rollcall audit prune`.",
    "Example:\n  rollcall audit export > audit.jsonl",
  );
  const prune = audit
    .command("prune")
    .description("Remove the oldest entries, which were exported")
    .requiredOption("--through <seq:hash>", "The last entry to remove, as `rollcall audit export` printed it");
  addChangeOptions(prune).action(
    action(
      shell,
      loaded(async () => (await import("../audit/audit-verbs.ts")).auditPrune),
    ),
  );
  addNotes(
    prune,
    "The server checks that the entry has this hash, so that what is removed is what was exported. It seals the cut: " +
      "`rollcall audit verify` goes on from there, and tells where the log begins. Keep the export: it is the only " +
      "copy.",
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
  await printListing(invocation, {
    columns: COLUMNS,
    nameOf: ({ sequence }: AuditEntry) => String(sequence),
    pages: readPages(
      (part) => control.attempt("admin", "list the audit log", () => client.listAuditEntries({ ...filter, ...part })),
      { limit, countOf: ({ entries }) => entries.length },
    ),
    itemsOf: ({ entries }) => entries,
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
    outcome,
    orderBy: options.oldestFirst ? "sequence" : "sequence desc",
    ...(since === undefined ? {} : { fromTime: timestampFromMs(parseMoment("since", since, nowMs)) }),
    ...(until === undefined ? {} : { untilTime: timestampFromMs(parseMoment("until", until, nowMs)) }),
  };
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: "SEQ", name: "sequence", rank: 4, cell: ({ sequence }) => ({ text: String(sequence) }) },
  { title: "TIME", name: "time", cell: ({ time }) => timeCell(time) },
  { title: "ACTOR", name: "actor", limit: 32, cell: ({ actor }) => ({ text: actor }) },
  {
    title: "METHOD",
    name: "method",
    // The service says little that the method does not.
    cell: ({ method }) => ({ text: method.split("/").at(-1) ?? method, raw: method }),
  },
  { title: "TARGET", name: "target", limit: 32, rank: 1, cell: ({ target }) => optionalCell(target) },
  {
    title: "OUTCOME",
    name: "outcome",
    rank: 2,
    cell: ({ outcome }) => ({ text: outcome, style: outcome === "OK" ? "plain" : "bad" }),
  },
  { title: "ADDRESS", name: "address", rank: 5, cell: ({ address }) => optionalCell(address) },
  { title: "REASON", name: "reason", limit: 40, rank: 3, cell: ({ reason }) => optionalCell(reason) },
  // The request's id leads to the line in the server's log.
  { title: "REQUEST", name: "request_id", wide: true, cell: ({ requestId }) => optionalCell(requestId) },
];

interface AuditVerifyOptions {
  readonly expectHead?: string;
}

/** The exit codes of `audit verify`: a log that is not intact differs from one that could not be read. */
const BROKEN = 1;
const NOT_VERIFIED = 3;

const auditVerify: Verb<AuditVerifyOptions> = withFailureCode(NOT_VERIFIED, async ({ shell, options }) => {
  const format = outputFormat(options, ANSWER_FORMATS);
  const expected = options.expectHead === undefined ? null : parseHead("expect-head", options.expectHead);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const verdict = await verifyAll(
    (request) => control.attempt("admin", "verify the audit log", () => client.verifyAuditLog(request)),
    expected,
  );
  if (format !== "table") await writePlain(shell, format, toPlain(VerifyAuditLogResponseSchema, verdict));
  const { problem, checked, head, cut } = verdict;
  if (problem !== undefined) throw broken(problem, checked);
  if (format !== "table" || head === undefined) return;
  const known = expected === null ? "" : `, and entry ${expected.sequence} is the one expected`;
  shell.out.write(
    `The audit log is intact: ${checked} entries${known}.\n` +
      (cut?.head === undefined ? "" : `It begins after ${cut.head.sequence}:${cut.head.hash}, seal ${cut.seal}\n`) +
      `Head: ${head.sequence}:${head.hash}\n` +
      "Keep the head somewhere else: --expect-head then shows that the log was not rewritten since.\n",
  );
});

function broken({ sequence, kind, message }: AuditProblem, checked: bigint): Exit {
  const sound =
    kind === AuditProblemKind.EXPECTED_HEAD_DIFFERS
      ? "the chain itself does not show where"
      : `the ${checked} entries before it are intact`;
  return new Exit(
    BROKEN,
    `the audit log is broken at entry ${sequence}: ${message}\n` +
      `${sound}; compare the log with the events, the servers' logs and a backup`,
  );
}

/** What one call of VerifyAuditLog is asked. */
type PieceRequest = MessageInitShape<typeof VerifyAuditLogRequestSchema>;

/** Check the whole log, piece by piece. Returns the last answer, with the entries of all pieces counted. */
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
