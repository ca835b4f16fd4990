/** The value, or why it is invalid: a phrase that follows the text of the value. */
export type ReadQuantity =
  | { readonly ok: true; readonly value: number }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string) => ({ ok: false, problem }) as const;
const AMOUNT = String.raw`\d{1,16}(?:\.\d{0,9})?|\.\d{1,9}`;
const BYTES = new RegExp(String.raw`^(${AMOUNT})\s*([kmgtpe]i?)?(b?)$`, "i");
const EXPONENT = new RegExp(String.raw`^(${AMOUNT})e(\d{1,2})$`, "i");
const PREFIXES = "kmgtpe";
const NO_BYTES = "is not an amount of bytes such as 512Mi, 2GiB, 1.5G or 1048576";

/**
 * Parse bytes as Kubernetes and Bacalhau write them: G and GB are 1000^3, Gi and GiB are 1024^3. Fractions of a byte
 * are dropped.
 */
export function readBytes(text: string): ReadQuantity {
  const trimmed = text.trim();
  const exponent = EXPONENT.exec(trimmed);
  if (exponent !== null) return whole(Number(exponent[1]) * 10 ** Number(exponent[2]));
  const found = BYTES.exec(trimmed);
  if (found === null) return refused(NO_BYTES);
  const [, amount = "", unit = "", byte] = found;
  // Refuse 500m, which is half a byte in Kubernetes, 500 MB in Bacalhau and 500 MiB in Docker.
  if (unit === "m" && byte === "") return refused("is ambiguous: m is a thousandth in Kubernetes; write M or Mi");
  if (unit === "" && amount.includes(".")) return refused("is a fraction of a byte");
  const power = unit === "" ? 0 : PREFIXES.indexOf(unit.charAt(0).toLowerCase()) + 1;
  return whole(Number(amount) * (unit.length === 2 ? 1_024 : 1_000) ** power);
}

function whole(value: number): ReadQuantity {
  const bytes = Math.floor(value);
  return Number.isSafeInteger(bytes) ? { ok: true, value: bytes } : refused("is more than 8 PiB");
}

const MILLICORES = /^(\d{1,9})m$/;
const CORES = /^(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})$/;

/** Parse processors in thousandths, as Kubernetes writes them: "2", "0.5", "500m". Rounded to whole thousandths. */
export function readMillicores(text: string): ReadQuantity {
  const trimmed = text.trim();
  const [, thousandths] = MILLICORES.exec(trimmed) ?? [];
  if (thousandths !== undefined) return { ok: true, value: Number(thousandths) };
  if (!CORES.test(trimmed)) return refused("is not a number of processors such as 2, 0.5 or 500m");
  const value = Math.round(Number(trimmed) * 1_000);
  if (value === 0 && Number(trimmed) > 0) return refused("is less than a thousandth of a processor");
  return { ok: true, value };
}
