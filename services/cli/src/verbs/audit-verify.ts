import { create } from "@bufbuild/protobuf";
import {
  type AuditHead,
  AuditHeadSchema,
  type AuditProblem,
  AuditProblemKind,
  AuditService,
  type VerifyAuditLogResponse,
  VerifyAuditLogResponseSchema,
} from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { type ControlPlane, reachControlPlane } from "../client/control-plane.ts";
import { Failure, UsageError } from "../failure.ts";
import type { Verb } from "../invocation.ts";
import { outputFormat } from "../output/format.ts";

/** What `audit verify` takes. */
export interface AuditVerifyOptions {
  readonly expectHead?: string;
}

const HEAD = /^(\d{1,18}):([0-9a-f]{64})$/;

/** `audit verify`: whether the audit log is as it was written. */
export const auditVerify: Verb<AuditVerifyOptions> = async ({ shell, options }) => {
  const format = outputFormat(options, ["table", "json", "yaml"]);
  const expected = options.expectHead === undefined ? null : parseHead(options.expectHead);
  const control = reachControlPlane(shell, options);
  const verdict = await verify(control, expected);
  if (format !== "table") {
    const { formatStructured, toPlain } = await import("../output/structured.ts");
    shell.out.write(await formatStructured(format, toPlain(VerifyAuditLogResponseSchema, verdict)));
  }
  const { problem, checked, head } = verdict;
  if (problem !== undefined) throw broken(problem, checked);
  if (format !== "table" || head === undefined) return;
  const known = expected === null ? "" : `, and entry ${expected.sequence} is the one expected`;
  shell.out.write(
    `The audit log is whole: ${checked} entries${known}.\n` +
      `Head: ${head.sequence}:${head.hash}\n` +
      "Keep the head somewhere else; with --expect-head it shows that the log was not written anew since.\n",
  );
};

function broken({ sequence, kind, message }: AuditProblem, checked: bigint): Failure {
  const sound =
    kind === AuditProblemKind.EXPECTED_HEAD_DIFFERS
      ? "the chain itself does not show where"
      : `the ${checked} entries before it are as they were written`;
  return new Failure(
    `the audit log is broken at entry ${sequence}: ${message}\n` +
      `${sound}; compare the log with the events, the servers' logs and a backup`,
  );
}

/** Check the whole log, piece by piece; the last answer, with what all pieces had. */
async function verify(control: ControlPlane, expected: AuditHead | null): Promise<VerifyAuditLogResponse> {
  const client = control.client("admin", AuditService);
  const expectedHead = expected === null ? {} : { expectedHead: expected };
  let after: AuditHead | undefined;
  let checked = 0n;
  for (;;) {
    const request = { ...expectedHead, ...(after === undefined ? {} : { after }) };
    const piece = await control.attempt("admin", "verify the audit log", () => client.verifyAuditLog(request));
    checked += piece.checked;
    after = piece.through;
    if (piece.complete || piece.problem !== undefined || after === undefined) {
      return { ...piece, checked };
    }
  }
}

function parseHead(text: string): AuditHead {
  const [, sequence, hash] = HEAD.exec(text.trim().toLowerCase()) ?? [];
  if (sequence === undefined || hash === undefined) {
    throw new UsageError(
      `cannot use '${text}' as expect-head value, should be SEQ:HASH as \`rollcall audit verify\` prints it`,
    );
  }
  return create(AuditHeadSchema, { sequence: BigInt(sequence), hash });
}
