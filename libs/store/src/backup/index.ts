export { ArchiveError } from "./archive-frames.ts";
export type { ArchivedFile, TableSum } from "./archive-manifest.ts";
export { backupRecord } from "./backup-record.ts";
export { type ArchiveSummary, verifyArchive } from "./read-archive.ts";
export { restoreRecord } from "./restore-record.ts";
