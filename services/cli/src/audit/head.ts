import { create } from "@bufbuild/protobuf";
import { type AuditHead, AuditHeadSchema } from "@rollcall/api/rollcall/admin/v1/audit_pb";
import { UsageError } from "../failure.ts";

const HEAD = /^(\d{1,18}):([0-9a-f]{64})$/;

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
