import { parseCount } from "../machine/parse-text.ts";
import type { GpuFacts } from "./machine-facts.ts";
import { parsePciAddress } from "./pci.ts";

/** Where rocm-smi is found: by name, and where AMD's packages put it. */
export const ROCM_PROGRAMS = ["rocm-smi", "/opt/rocm/bin/rocm-smi"] as const;

/** The arguments that make rocm-smi print what `parseRocmFacts` reads. */
export const ROCM_FACTS_ARGS = [
  "--showproductname",
  "--showuniqueid",
  "--showdriverversion",
  "--showbus",
  "--showmeminfo",
  "vram",
  "--json",
] as const;

/**
 * The values of one card. The keys are in lower case, because versions of rocm-smi differ in the case
 * of their keys.
 */
export type RocmCard = ReadonlyMap<string, string>;

/** The output of rocm-smi: the values of each card, and those that apply to all cards. */
export interface RocmAnswer {
  readonly cards: readonly { readonly index: number; readonly values: RocmCard }[];
  readonly system: RocmCard;
}

/** Parse the output of `rocm-smi ... --json`; warnings around the JSON are skipped. Never throws. */
export function parseRocmAnswer(stdout: string): RocmAnswer {
  const sections = Object.entries(parseObject(stdout));
  return {
    cards: sections
      .flatMap(([name, section]) => {
        const index = parseCount(/^card(\d+)$/.exec(name)?.[1]);
        return index === undefined ? [] : [{ index, values: toCard(section) }];
      })
      .sort((a, b) => a.index - b.index),
    system: toCard(sections.find(([name]) => name === "system")?.[1]),
  };
}

/** Parse the output for `ROCM_FACTS_ARGS`. Returns the GPUs, ordered by index. */
export function parseRocmFacts(stdout: string): readonly GpuFacts[] {
  const { cards, system } = parseRocmAnswer(stdout);
  return cards.map(({ index, values }) => ({
    vendor: "AMD",
    index,
    name: cardName(values),
    uuid: values.get("unique id"),
    unusable: values.has("unique id") ? "" : "its driver reports no id",
    driverVersion: system.get("driver version") ?? values.get("driver version"),
    pciAddress: parsePciAddress(values.get("pci bus")),
    memoryMib: parseMebibytes(values.get("vram total memory (b)")),
  }));
}

/** Convert a value in bytes to MiB. */
export function parseMebibytes(bytes: string | undefined): number | undefined {
  const count = parseCount(bytes);
  return count === undefined ? undefined : Math.round(count / 1024 ** 2);
}

/** The model, if it is a name. Older versions print the device's number instead. */
function cardName(values: RocmCard): string | undefined {
  return ["card series", "device name", "card model", "gfx version"]
    .map((key) => values.get(key))
    .find((value) => value !== undefined && !value.startsWith("0x"));
}

function parseObject(stdout: string): object {
  const from = stdout.indexOf("{");
  const to = stdout.lastIndexOf("}");
  if (from < 0 || to < from) return {};
  try {
    const parsed: unknown = JSON.parse(stdout.slice(from, to + 1));
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    // Treat malformed output as no output.
    return {};
  }
}

function toCard(section: unknown): RocmCard {
  if (typeof section !== "object" || section === null) return new Map();
  return new Map(
    Object.entries(section)
      .map(([key, value]) => [key.toLowerCase(), String(value).trim()] as const)
      .filter(([, value]) => value !== "" && value !== "N/A"),
  );
}
