/** A non-negative integer, or `undefined` for anything else (`-1`, `[N/A]`, empty). */
export function parseCount(text: string | undefined): number | undefined {
  const digits = text?.trim() ?? "";
  return /^\d{1,15}$/.test(digits) ? Number(digits) : undefined;
}

/** A decimal number with optional sign, or `undefined` for anything else. */
export function parseNumber(text: string | undefined): number | undefined {
  const digits = text?.trim() ?? "";
  return /^-?\d{1,15}(\.\d+)?$/.test(digits) ? Number(digits) : undefined;
}

/** The CPUs of a kernel list such as `0-3,8,10-11`, in order; the strided form `0-6:2/4` never occurs in sysfs. */
export function parseCpuList(text: string): readonly number[] {
  return text.split(",").flatMap((part) => {
    const [, first, last] = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined) return [];
    const from = Number(first);
    const length = Number(last ?? first) - from + 1;
    return length > 0 && length <= MOST_CPUS ? Array.from({ length }, (_, i) => from + i) : [];
  });
}

/** The `key: value` lines of a /proc file; of several equal keys, the first is used. */
export function parseFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon < 0) continue;
    const key = line.slice(0, colon).trim();
    if (!fields.has(key)) fields.set(key, line.slice(colon + 1).trim());
  }
  return fields;
}

/** Bytes of a /proc/meminfo value such as `16303428 kB`. */
export function parseKibibytes(text: string | undefined): number | undefined {
  const [, digits] = /^(\d{1,12}) kB$/.exec(text?.trim() ?? "") ?? [];
  return digits === undefined ? undefined : Number(digits) * 1024;
}

/** The maximum number of CPUs that any build of Linux supports. A longer range is not a CPU list. */
const MOST_CPUS = 8_192;
