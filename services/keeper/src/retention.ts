/** An execution that has ended. */
export interface EndedExecution {
  readonly id: string;
  readonly endedWallMs: number;
  /** Null while it is reported. */
  readonly forgottenWallMs: number | null;
}

/** What is kept of executions that have ended. */
export const RETENTION = {
  /** Output of forgotten executions can be read for so long, */
  forgottenMs: 86_400_000,
  /** of so many of them. */
  forgotten: 200,
  /** Ends that no control plane has recorded. */
  unrecorded: 2_000,
} as const;

/** What to release. */
export interface RetentionPlan {
  /** No longer to be reported, although their ends are not recorded. */
  readonly forget: readonly string[];
  /** To remove, with their output. */
  readonly remove: readonly string[];
}

/** Decide which ended executions a machine lets go of, the oldest first. */
export function planRetention(ended: readonly EndedExecution[], wallMs: number): RetentionPlan {
  const unrecorded = ended.filter(({ forgottenWallMs }) => forgottenWallMs === null);
  const oldestFirst = [...unrecorded].sort((a, b) => a.endedWallMs - b.endedWallMs);
  const forgotten = ended.flatMap(({ id, forgottenWallMs }) =>
    forgottenWallMs === null ? [] : [{ id, forgottenWallMs }],
  );
  const newestFirst = [...forgotten].sort((a, b) => b.forgottenWallMs - a.forgottenWallMs);
  return {
    forget: oldestFirst.slice(0, Math.max(0, unrecorded.length - RETENTION.unrecorded)).map(({ id }) => id),
    remove: newestFirst
      .filter(({ forgottenWallMs }, index) => {
        return index >= RETENTION.forgotten || wallMs - forgottenWallMs > RETENTION.forgottenMs;
      })
      .map(({ id }) => id),
  };
}
