/** Why an archive cannot be read or restored; the message says what is wrong with it, and where it can, what to do. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** An archive that is not as it was written. */
export function damaged(what: string, cause?: unknown): ArchiveError {
  return new ArchiveError(`the archive is damaged: ${what}`, cause === undefined ? undefined : { cause });
}
