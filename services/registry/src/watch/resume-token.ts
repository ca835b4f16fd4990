import { refuse } from "@rollcall/errors";

/** A position to resume a watch from. */
export interface ResumePoint {
  /**
   * "position" means to resume after a revision. "snapshot" means to start with a new snapshot, because the previous
   * one was incomplete.
   */
  readonly kind: "position" | "snapshot";
  /** The history of the log that the revision belongs to, a UUID. */
  readonly logId: string;
  /** 0 for a snapshot. */
  readonly revision: bigint;
}

const UUID_BYTES = 16;
const TOKEN_BYTES = 1 + UUID_BYTES + 8;
/** The first byte of a token, which tells the formats apart. New formats get new numbers. */
const KINDS = { position: 1, snapshot: 2 } as const;

/** The largest revision: the store keeps revisions as signed 64-bit numbers. */
export const LAST_REVISION = 2n ** 63n - 1n;

/** Format a resume token: base64url of a kind, the log's id, and a revision. */
export function formatResumeToken({ kind, logId, revision }: ResumePoint): string {
  const bytes = Buffer.alloc(TOKEN_BYTES);
  bytes[0] = KINDS[kind];
  bytes.write(logId.replaceAll("-", ""), 1, "hex");
  bytes.writeBigUInt64BE(revision, 1 + UUID_BYTES);
  return bytes.toString("base64url");
}

/** Parse a resume token. Throws INVALID_RESUME_TOKEN. */
export function parseResumeToken(text: string): ResumePoint {
  const bytes = Buffer.from(text, "base64url");
  const kind = (["position", "snapshot"] as const).find((it) => KINDS[it] === bytes[0]);
  if (bytes.length !== TOKEN_BYTES || kind === undefined) {
    throw invalidResumeToken("the resume token is not from this cluster; start again without one");
  }
  const logId = bytes
    .subarray(1, 1 + UUID_BYTES)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  return { kind, logId, revision: bytes.readBigUInt64BE(1 + UUID_BYTES) };
}

/** The error for a token or a revision that the log cannot have issued. */
export function invalidResumeToken(message: string, metadata: Readonly<Record<string, string>> = {}): Error {
  return refuse("INVALID_RESUME_TOKEN", message, {
    metadata,
    violations: [{ field: "start", description: message }],
  });
}

/** The error for a reader that requests compacted events, or events of another history of the log. */
export function revisionCompacted(compacted: bigint, why: "compacted" | "other-log"): Error {
  const message =
    why === "compacted"
      ? `events up to revision ${compacted} have been compacted; list again, or watch from the first remaining event`
      : "the database was restored and has a new event log; list again";
  return refuse("REVISION_COMPACTED", message, {
    metadata: { compactedRevision: `${compacted}`, listAfterRevision: `${compacted}` },
  });
}

/** The error for a watcher that does not keep up, with the position to resume from. */
export function watcherTooSlow(resume: ResumePoint): Error {
  return refuse("WATCHER_TOO_SLOW", "the watcher does not keep up; continue from the resume token", {
    metadata: { resumeToken: formatResumeToken(resume), revision: `${resume.revision}` },
  });
}
