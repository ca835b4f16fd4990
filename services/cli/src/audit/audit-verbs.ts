import { create, toJson } from "@bufbuild/protobuf";
import {
  type AuditCut,
  AuditEntrySchema,
  type AuditHead,
  AuditHeadSchema,
  AuditService,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { reachControlPlane } from "../client/control-plane.ts";
import { Failure, parseCount, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { counted } from "../output/text.ts";

interface AuditPruneOptions {
  readonly through: string;
  readonly message?: string;
  readonly requestId?: string;
}

const HEAD = /^(\d{1,18}):([0-9a-f]{64})$/;

interface AuditExportOptions {
  readonly after?: string;
}

const PAGE_SIZE = 1_000;

/** `rollcall audit prune`. */
export const auditPrune: Verb<AuditPruneOptions> = async ({ shell, options }) => {
  const through = parseHead("through", options.through);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  const reason = options.message ?? "";
  let removed = 0n;
  let cut: AuditCut | undefined;
  for (let part = 1, isComplete = false; !isComplete; part += 1) {
    // Give each call its own idempotency key, because each call is a separate change.
    const requestId = options.requestId === undefined ? "" : `${options.requestId}/${part}`;
    const answer = await control.attempt("admin", "prune the audit log", () =>
      client.pruneAuditLog({ through, reason, requestId }),
    );
    removed += answer.removed;
    cut = answer.cut;
    isComplete = answer.complete;
  }
  const where = cut?.head === undefined ? "" : `; the log now starts after ${cut.head.sequence}:${cut.head.hash}`;
  shell.out.write(`Removed ${removed} ${removed === 1n ? "entry" : "entries"}${where}\n`);
  if (cut !== undefined) shell.out.write(`Signature of the new start: ${cut.seal}\n`);
};

/** Read a head that a verb printed. Throws UsageError. */
export function parseHead(option: string, text: string): AuditHead {
  const [, sequence, hash] = HEAD.exec(text.trim().toLowerCase()) ?? [];
  if (sequence === undefined || hash === undefined) {
    throw new UsageError(
      `cannot use '${text}' as ${option} value, should be SEQ:HASH as \`rollcall audit verify\` prints it`,
    );
  }
  return create(AuditHeadSchema, { sequence: BigInt(sequence), hash });
}

/** `rollcall audit export`. */
export const auditExport: Verb<AuditExportOptions> = async ({ shell, options }) => {
  const after = parseCount("after", options.after ?? "0", 0);
  const control = reachControlPlane(shell, options);
  const client = control.client("admin", AuditService);
  let last: { readonly sequence: bigint; readonly hash: string } | null = null;
  let written = 0;
  let pageToken = "";
  do {
    const request = { orderBy: "sequence", afterSequence: BigInt(after), pageSize: PAGE_SIZE, pageToken };
    const page = await control.attempt("admin", "export the audit log", () => client.listAuditEntries(request));
    for (const entry of page.entries) {
      if (last !== null && (entry.sequence !== last.sequence + 1n || entry.previousHash !== last.hash)) {
        throw new Failure(
          `entry ${entry.sequence} does not follow entry ${last.sequence}: run \`rollcall audit verify\``,
        );
      }
      shell.out.write(`${JSON.stringify(toJson(AuditEntrySchema, entry, { alwaysEmitImplicit: true }))}\n`);
      last = entry;
      written += 1;
    }
    pageToken = page.nextPageToken;
    shell.interrupted.throwIfAborted();
  } while (pageToken !== "");
  // Report the exported entries only once they are on disk, because the user may prune them next.
  await shell.out.finish();
  shell.err.write(
    last === null
      ? "exported 0 entries\n"
      : `exported ${counted(written, "entry", "entries")}, through ${last.sequence}:${last.hash}\n`,
  );
};
