import { setTimeout as pause } from "node:timers/promises";

const BOUND_MS = 60_000;
const POLL_MS = 10;

/** Wait until an assertion passes. After a minute, fail with the error of the assertion. */
export async function eventually(assertion: () => unknown): Promise<void> {
  const deadlineMs = performance.now() + BOUND_MS;
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (performance.now() >= deadlineMs) throw error;
      await pause(POLL_MS);
    }
  }
}
