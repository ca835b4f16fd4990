/**
 * Let callers share what is costly: one run at a time, and whoever asks while one is under way gets the outcome of the next, which sees all that
 * had happened when they asked.
 */
export function shareRuns<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | null = null;
  let next: Promise<T> | null = null;
  const begin = (): Promise<T> => {
    const begun = run().finally(() => {
      if (current === begun) current = null;
    });
    current = begun;
    return begun;
  };
  return () => {
    if (current === null) return begin();
    next ??= current
      .catch(() => {}) // Told to those who asked for it.
      .then(() => {
        next = null;
        return begin();
      });
    return next;
  };
}
