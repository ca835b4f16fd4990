export interface EndedExecution {
  readonly id: string;
  readonly endedWallMs: number;
  /** When the execution was forgotten, in wall time; null while it is reported. */
  readonly forgottenWallMs: number | null;
}

/** Limits on the number of ended executions to keep, and on the time to keep them. */
export const RETENTION = {
  /** How long the output of forgotten executions can be read. */
  forgottenMs: 86_400_000,
  /** The maximum number of forgotten executions. */
  forgotten: 200,
  /** The maximum number of ended executions whose ends no control plane has stored. */
  unrecorded: 2_000,
} as const;

/** Which executions to forget and to remove. */
export interface RetentionPlan {
  /** Ids of executions to stop reporting, although no control plane has stored their ends. */
  readonly forget: readonly string[];
  /** Executions to remove, with their output. */
  readonly remove: readonly string[];
}

/** Decide which ended executions a machine forgets or removes, the oldest first. */
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
