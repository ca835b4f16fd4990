const LIMIT_MS = 20_000;
const LOOK_EVERY_MS = 5;

/** Resolves as soon as a condition holds; rejects when it does not within 20 s. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + LIMIT_MS;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`it did not come to pass: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
