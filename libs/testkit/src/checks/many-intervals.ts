/** Something that is given up when it makes no progress for a while. */
export interface TimedSubject {
  /** How long it can make no progress. It is given up then, or at most `stepMs` later. */
  readonly limitMs: number;
  /** The interval at which it is checked. */
  readonly stepMs: number;
  /** Let time pass. */
  pass(ms: number): unknown;
  /** Show one sign of progress. */
  progress(): unknown;
  /** Whether it has not been given up. */
  isKept(): boolean | Promise<boolean>;
}

const INTERVALS = 100;

/**
 * Let a hundred intervals pass, with one sign of progress in each: first at every check, then as late as possible. What
 * makes progress is kept, and what has stopped is given up, whenever that happens. Returns what is wrong.
 *
 * @param create creates a new subject, which has just made progress.
 */
export async function faultsOverIntervals(
  create: () => TimedSubject | Promise<TimedSubject>,
): Promise<readonly string[]> {
  const faults: string[] = [];
  const { limitMs, stepMs } = await create();
  for (const everyMs of [stepMs, limitMs - stepMs]) {
    const subject = await create();
    for (let interval = 1; interval <= INTERVALS && faults.length === 0; interval += 1) {
      await passSteps(subject, everyMs);
      if (!(await subject.isKept())) faults.push(`given up in interval ${interval} with progress every ${everyMs} ms`);
      await subject.progress();
    }
    faults.push(...(await faultsOfSilence(subject, `after ${INTERVALS} intervals of ${everyMs} ms`)));
  }
  faults.push(...(await faultsOfSilence(await create(), "at the start")));
  return faults;
}

async function faultsOfSilence(subject: TimedSubject, when: string): Promise<readonly string[]> {
  const { limitMs, stepMs } = subject;
  await passSteps(subject, limitMs - stepMs);
  if (!(await subject.isKept())) return [`given up before ${limitMs} ms without progress, ${when}`];
  await passSteps(subject, 2 * stepMs);
  return (await subject.isKept()) ? [`kept for more than ${limitMs + stepMs} ms without progress, ${when}`] : [];
}

async function passSteps(subject: TimedSubject, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += subject.stepMs) await subject.pass(subject.stepMs);
}
