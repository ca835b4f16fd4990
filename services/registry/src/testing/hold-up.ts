import { expect } from "@jest/globals";
import { eventually } from "@rollcall/testkit";

/**
 * Reads slowly: holds each stream up once, until `steady` is `ahead` further, and goes on until it was cut for that. To
 * hold up every message that was on its way would take as many again for each.
 */
export function holdUp(
  steady: () => bigint,
  ahead: bigint,
): (watcher: { readonly ends: readonly string[] }) => Promise<void> {
  let held = 0;
  return async ({ ends }) => {
    if (held > ends.length || ends.includes("WATCHER_TOO_SLOW")) return;
    held = ends.length + 1;
    const from = steady();
    await eventually(() => expect(steady()).toBeGreaterThan(from + ahead));
  };
}
