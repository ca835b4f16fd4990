import { refuse } from "@rollcall/errors";

/** A place from which a watch can go on. */
export interface ResumePoint {
  /** "position": after a revision. "snapshot": with a snapshot, since the one that it is from was not complete. */
  readonly kind: "position" | "snapshot";
  /** The history of the log that the revision belongs to, a UUID. */
  readonly logId: string;
  /** 0 for a snapshot. */
  readonly revision: bigint;
}

const UUID_BYTES = 16;
const TOKEN_BYTES = 1 + UUID_BYTES + 8;
/** The first byte; further formats get further numbers. */
const KINDS = { position: 1, snapshot: 2 } as const;

/** Revisions are positive 64-bit numbers with a sign in the record; none is above this one. */
export const LAST_REVISION = 2n ** 63n - 1n;

/** The text of a resume token: base64url of a kind, the log's id, and a revision. */
export function formatResumeToken({ kind, logId, revision }: ResumePoint): string {
  const bytes = Buffer.alloc(TOKEN_BYTES);
  bytes[0] = KINDS[kind];
  bytes.write(logId.replaceAll("-", ""), 1, "hex");
  bytes.writeBigUInt64BE(revision, 1 + UUID_BYTES);
  return bytes.toString("base64url");
}

/** Read a resume token. Throws INVALID_RESUME_TOKEN for a text that is none. */
export function parseResumeToken(text: string): ResumePoint {
  const bytes = Buffer.from(text, "base64url");
  const kind = (["position", "snapshot"] as const).find((it) => KINDS[it] === bytes[0]);
  if (bytes.length !== TOKEN_BYTES || kind === undefined) {
    throw invalidResumeToken("the resume token was not made here; begin again without one");
  }
  const logId = bytes
    .subarray(1, 1 + UUID_BYTES)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return { kind, logId, revision: bytes.readBigUInt64BE(1 + UUID_BYTES) };
}

/** The error of a token, or a revision, that the log cannot have given out. */
export function invalidResumeToken(message: string, metadata: Readonly<Record<string, string>> = {}): Error {
  return refuse("INVALID_RESUME_TOKEN", message, {
    metadata,
    violations: [{ field: "start", description: message }],
  });
}

/** The error of a reader that wants events which have been forgotten, or those of another history of the log. */
export function revisionCompacted(compacted: bigint, why: "compacted" | "other-log"): Error {
  const message =
    why === "compacted"
      ? `events up to revision ${compacted} have been forgotten; list again, or watch from the beginning of what ` +
        "is kept"
      : "the log is another than the one that was read before, since the database was restored; list again";
  return refuse("REVISION_COMPACTED", message, {
    metadata: { compactedRevision: `${compacted}`, listAfterRevision: `${compacted}` },
  });
}

/** The error of a watcher that does not keep up, with where to go on. */
export function watcherTooSlow(resume: ResumePoint): Error {
  return refuse("WATCHER_TOO_SLOW", "the watcher does not keep up; go on from the resume token", {
    metadata: { resumeToken: formatResumeToken(resume), revision: `${resume.revision}` },
  });
}
