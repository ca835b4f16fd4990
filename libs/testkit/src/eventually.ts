import { setTimeout as pause } from "node:timers/promises";

const BOUND_MS = 60_000;
const POLL_MS = 10;

/** Wait until an assertion passes, as long as it takes up to a minute; then it fails with the assertion's own words. */
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
