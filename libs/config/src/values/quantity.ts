/** What is read, or why it cannot be, as the end of a sentence that begins with the text. */
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
 * Read bytes as Kubernetes and Bacalhau write them: G and GB are 1000 to the third, Gi and GiB 1024 to the third.
 * A part of a byte is not kept.
 */
export function readBytes(text: string): ReadQuantity {
  const trimmed = text.trim();
  const exponent = EXPONENT.exec(trimmed);
  if (exponent !== null) return whole(Number(exponent[1]) * 10 ** Number(exponent[2]));
  const found = BYTES.exec(trimmed);
  if (found === null) return refused(NO_BYTES);
  const [, amount = "", unit = "", byte] = found;
  // 500m is half a byte to Kubernetes, 500 MB to Bacalhau and 500 MiB to Docker.
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

/** Read processors in thousandths, as Kubernetes writes them: "2", "0.5", "500m". Thousandths are the smallest part. */
export function readMillicores(text: string): ReadQuantity {
  const trimmed = text.trim();
  const [, thousandths] = MILLICORES.exec(trimmed) ?? [];
  if (thousandths !== undefined) return { ok: true, value: Number(thousandths) };
  if (!CORES.test(trimmed)) return refused("is not a number of processors such as 2, 0.5 or 500m");
  const value = Math.round(Number(trimmed) * 1_000);
  if (value === 0 && Number(trimmed) > 0) return refused("is less than a thousandth of a processor");
  return { ok: true, value };
}
