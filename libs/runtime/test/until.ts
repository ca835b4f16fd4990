import { setTimeout as pause } from "node:timers/promises";

const PATIENCE_MS = 10_000;

/** Wait for a condition, with a generous bound. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`it never came to be that ${what}`);
    await pause(5);
  }
}
