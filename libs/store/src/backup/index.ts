export { ArchiveError } from "./archive-frames.ts";
export type { ArchivedFile, TableSum } from "./archive-manifest.ts";
export { backupRecord } from "./backup-store.ts";
export { type ArchiveSummary, verifyArchive } from "./read-archive.ts";
export { restoreRecord } from "./restore-store.ts";
