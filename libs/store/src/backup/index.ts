export { ArchiveError } from "./archive-frames.ts";
export type { ArchivedFile, ArchiveManifest, TableSum } from "./archive-manifest.ts";
export { type BackupOptions, type BackupReport, backupRecord } from "./backup-record.ts";
export { type ArchiveSummary, verifyArchive } from "./read-archive.ts";
export { type RestoreOptions, type RestoreReport, restoreRecord } from "./restore-record.ts";
