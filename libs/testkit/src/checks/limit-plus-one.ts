import { describeError } from "@rollcall/errors";

/** One use of a counted resource. */
export interface Use {
  /** The ways in which the use can end, keyed by title, such as "cancel". Each ends it once. */
  readonly endings: Readonly<Record<string, () => unknown>>;
}

/** A resource of which there is a limited number. */
export interface CountedResource {
  /** How many uses there can be at the same time. */
  readonly limit: number;
  /** The reason of the error for one more. */
  readonly reason: string;
  /** Begin a use. Throws or rejects when there is none left. */
  begin(): Use | Promise<Use>;
  /** How many uses are counted now; absent when the resource does not say. */
  held?(): number;
}

/**
 * Try a resource to its limit and once more: one after the other, at the same time, and again after each way of ending.
 * Returns what is wrong, empty for nothing.
 */
export async function faultsAtLimit(resource: CountedResource): Promise<readonly string[]> {
  const faults: string[] = [];
  const { limit, reason, held } = resource;
  const first = await begin(resource);
  if (typeof first === "string") return [`the first use was refused: ${first}`];
  const endings = Object.keys(first.endings);
  await end(first, endings[0]);
  for (const ending of endings) {
    for (let count = 1; count <= limit + 1; count += 1) {
      const use = await begin(resource);
      if (typeof use === "string")
        return [...faults, `use ${count} after ${count - 1} that ended by ${ending}: ${use}`];
      await end(use, ending);
    }
    const uses: Use[] = [];
    for (let count = 1; count <= limit; count += 1) {
      const use = await begin(resource);
      if (typeof use === "string") return [...faults, `concurrent use ${count} of ${limit}: ${use}`];
      uses.push(use);
    }
    const more = await begin(resource);
    if (more !== reason)
      faults.push(`concurrent use ${limit + 1} of ${limit}: ${typeof more === "string" ? more : "ok"}`);
    if (typeof more !== "string") await end(more, ending);
    // One use that ends makes room for exactly one.
    const [leaving, ...others] = uses;
    if (leaving !== undefined) await end(leaving, ending);
    const next = await begin(resource);
    if (typeof next === "string") faults.push(`after one of ${limit} ended by ${ending}: ${next}`);
    else others.push(next);
    const beyond = await begin(resource);
    if (beyond !== reason) faults.push(`one more after that: ${typeof beyond === "string" ? beyond : "ok"}`);
    if (typeof beyond !== "string") await end(beyond, ending);
    for (const use of others) await end(use, ending);
    if (held !== undefined && held() !== 0) faults.push(`${held()} still held after all ended by ${ending}`);
  }
  return faults;
}

/** Begin a use; returns the reason if it is refused. */
async function begin(resource: CountedResource): Promise<Use | string> {
  try {
    return await resource.begin();
  } catch (error) {
    const { reason, message } = describeError(error);
    return reason === undefined || reason === "" ? message : reason;
  }
}

async function end(use: Use, ending: string | undefined): Promise<void> {
  await use.endings[ending ?? ""]?.();
}
