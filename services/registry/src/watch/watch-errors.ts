import { refuse } from "@rollcall/errors";
import { formatResumeToken, type ResumePoint } from "./resume-token.ts";

/** The error of a reader that wants events which have been forgotten, or those of another history of the log. */
export function revisionCompacted(compacted: bigint, why: "compacted" | "other-log"): Error {
  const message =
    why === "compacted"
      ? `events up to revision ${compacted} have been forgotten; list again, or watch from the beginning of what is kept`
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
