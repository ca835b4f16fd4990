/** One named check of readiness. */
export interface CheckResult {
  readonly ok: boolean;
  /** What was found, for people. */
  readonly message: string;
}

/** What a service depends on right now, by the name of the check. Ready means that each is ok. */
export type ReadyReport = Readonly<Record<string, CheckResult>>;

/** Find out whether a service can do its work. */
export type ReadyCheck = () => ReadyReport | Promise<ReadyReport>;

/** Whether everything is ok. */
export function isReady(report: ReadyReport): boolean {
  return Object.values(report).every((check) => check.ok);
}
