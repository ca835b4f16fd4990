import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { CommandResult } from "../machine/run-command.ts";
import { type PlantedMachine, plantMachine, type RecordedMachine } from "../testing/machine-tree.ts";
import {
  BROKEN_FACTS,
  H100_FACTS,
  MI250_FACTS,
  MIG_FACTS,
  NO_DEVICES,
  NO_DRIVER,
} from "../testing/recordings/gpu-tools.ts";
import { readRocmUsage } from "../usage/gpu-usage.ts";
import { createFactsReader, type FactsReader } from "./facts-reader.ts";

const HANGS: CommandResult = { kind: "no-answer", cause: "timeout" };
const FAILS: CommandResult = { kind: "finished", exitCode: 9, stdout: NO_DRIVER };
const NONE: CommandResult = { kind: "finished", exitCode: 6, stdout: NO_DEVICES };
const AT_MS = Date.parse("2026-05-01T12:00:00Z");

const card = (address: string, vendor: string, pciClass: string) => ({
  [`/sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
  [`/sys/bus/pci/devices/${address}/class`]: `${pciClass}\n`,
});
/** A bus with a GPU that uses NVIDIA's driver. */
const WITH_GPU: RecordedMachine = {
  files: card("0000:1b:00.0", "0x10de", "0x030200"),
  links: { "/sys/bus/pci/devices/0000:1b:00.0/driver": "../../../bus/pci/drivers/nvidia" },
};

describe("the GPUs among the facts", () => {
  let planted: PlantedMachine;
  let state: string;
  let warnings: unknown[];
  beforeEach(async () => {
    state = await mkdtemp(join(tmpdir(), "rollcall-facts-"));
    warnings = [];
  });
  afterEach(async () => {
    await planted.remove();
    await rm(state, { recursive: true, force: true });
  });

  const plant = async (recorded: RecordedMachine) => {
    planted = await plantMachine(recorded);
  };
  const reader = (wallMs = AT_MS): FactsReader =>
    createFactsReader(planted.machine, state, {
      wallMs: () => wallMs,
      log: { warn: (fields: unknown) => warnings.push(fields), info: () => {} },
    });
  const gpusOf = async (of: FactsReader) => (await of.read()).gpus;

  it("should list NVIDIA's GPUs before AMD's", async () => {
    await plant({ programs: { "rocm-smi": MI250_FACTS, "nvidia-smi": H100_FACTS } });
    const gpus = await gpusOf(reader());
    expect(gpus.map((gpu) => gpu.vendor)).toEqual([...Array(8).fill("NVIDIA"), "AMD", "AMD"]);
  });

  it("should use no index twice, and keep each if the other vendor's tool lists none", async () => {
    const nvidia = Array.from({ length: 8 }, (_, at) => card(`0000:${at + 10}:00.0`, "0x10de", "0x030200"));
    await plant({
      programs: { "rocm-smi": MI250_FACTS, "nvidia-smi": H100_FACTS },
      files: Object.assign(
        {},
        ...nvidia,
        card("0000:30:00.0", "0x10de", "0x040300"),
        card("0000:31:00.0", "0x1002", "0x038000"),
      ),
    });
    const facts = reader();
    const indices = async () => (await gpusOf(facts)).map(({ index }) => index);
    expect(await indices()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    planted.answer("nvidia-smi", FAILS);
    expect(await indices()).toEqual([8, 9]);
  });

  it("should find nvidia-smi at its path on Windows", async () => {
    await plant({ programs: { "/usr/lib/wsl/lib/nvidia-smi": H100_FACTS } });
    expect(await gpusOf(reader())).toHaveLength(8);
  });

  it("should query an older driver, which does not support MIG, without it", async () => {
    await plant({});
    const asked: (readonly string[])[] = [];
    const run = async (program: string, args: readonly string[]): Promise<CommandResult> => {
      if (program !== "nvidia-smi") return { kind: "missing" };
      asked.push(args);
      const refusal = 'Field "mig.mode.current" is not a valid field to query.\n';
      if (args.join().includes("mig")) return { kind: "finished", exitCode: 2, stdout: refusal };
      return { kind: "finished", exitCode: 0, stdout: H100_FACTS };
    };
    const facts = await createFactsReader({ ...planted.machine, run }, state).read();
    expect([asked.length, facts.gpus.length, facts.unknown]).toEqual([2, 8, []]);
  });

  it.each<[string, CommandResult | null]>([
    ["hangs", HANGS],
    ["cannot reach its driver", FAILS],
    ["names no GPU", NONE],
    ["is not installed", null],
  ])("should report them as unknown, with the last known ones, if the tool %s", async (_, answer) => {
    await plant({ ...WITH_GPU, programs: { "nvidia-smi": H100_FACTS } });
    const known = await reader().read();
    expect([known.gpus.length, known.unknown]).toEqual([8, []]);
    planted.answer("nvidia-smi", answer ?? { kind: "missing" });
    // A new reader, as after a restart, gets the last known GPUs from the state directory.
    const later = reader(AT_MS + 60_000);
    for (let count = 0; count < 3; count += 1) {
      const facts = await later.read();
      expect(facts.gpus).toEqual(known.gpus);
      expect(facts.unknown).toEqual([
        { fact: "gpus", reason: expect.stringContaining("nvidia-smi"), knownAtMs: AT_MS },
      ]);
    }
    expect(warnings).toHaveLength(1);
    planted.answer("nvidia-smi", H100_FACTS);
    expect((await later.read()).unknown).toEqual([]);
  });

  it.each<[string, CommandResult]>([
    ["fails", { kind: "finished", exitCode: 2, stdout: "" }],
    ["cannot be started", { kind: "no-answer", cause: "not-started" }],
  ])("should report AMD's as unknown, with the last known ones, if the tool %s", async (_, answer) => {
    await plant({
      files: card("0000:31:00.0", "0x1002", "0x038000"),
      links: { "/sys/bus/pci/devices/0000:31:00.0/driver": "../../../bus/pci/drivers/amdgpu" },
      programs: { "rocm-smi": MI250_FACTS },
    });
    const facts = reader();
    const known = await facts.read();
    expect([known.gpus.length, known.unknown]).toEqual([2, []]);
    planted.answer("rocm-smi", answer);
    const later = await facts.read();
    expect([later.gpus, later.unknown]).toEqual([
      known.gpus,
      [{ fact: "gpus", reason: expect.stringContaining("rocm-smi"), knownAtMs: AT_MS }],
    ]);
    expect(await readRocmUsage(planted.machine)).toBeUndefined();
  });

  it("should report them as unknown if none were ever known", async () => {
    await plant({ ...WITH_GPU, programs: { "nvidia-smi": HANGS } });
    expect(await reader().read()).toMatchObject({ gpus: [], unknown: [{ fact: "gpus", knownAtMs: null }] });
    await writeFile(join(state, "last-known.json"), "{broken");
    expect(await reader().read()).toMatchObject({ gpus: [], unknown: [{ fact: "gpus", knownAtMs: null }] });
  });

  it("should accept that there is no GPU if the bus has none and the tool lists none or is missing", async () => {
    await plant({ programs: { "nvidia-smi": H100_FACTS }, files: card("0000:00:02.0", "0x8086", "0x030000") });
    const facts = reader();
    await facts.read();
    for (const answer of [FAILS, NONE]) {
      planted.answer("nvidia-smi", answer);
      expect(await facts.read()).toMatchObject({ gpus: [], unknown: [] });
    }
    planted.answer("nvidia-smi", { kind: "missing" });
    expect(await facts.read()).toMatchObject({ gpus: [], unknown: [] });
  });

  it("should not trust a tool that fails if the bus cannot be read, as in some containers", async () => {
    await plant({ programs: { "nvidia-smi": FAILS } });
    expect((await reader().read()).unknown).toHaveLength(1);
    planted.answer("nvidia-smi", NONE);
    expect((await reader().read()).unknown).toEqual([]);
  });

  it("should report a GPU without an id as unusable", async () => {
    await plant({ programs: { "nvidia-smi": BROKEN_FACTS } });
    const gpus = await gpusOf(reader());
    const shown = gpus.map(({ uuid, unusable }) => [uuid, unusable !== ""]);
    expect(shown).toEqual([
      ["GPU-9bd0e64c-5f0a-7c6e-8a0c-4f6b2b1c9a11", false],
      [undefined, true],
      [undefined, true],
    ]);
  });

  it("should report a GPU in MIG mode as unusable, with the reason", async () => {
    await plant({ programs: { "nvidia-smi": MIG_FACTS } });
    const gpus = await gpusOf(reader());
    expect(gpus.map(({ unusable }) => unusable)).toEqual([expect.stringContaining("MIG mode"), ""]);
  });

  it("should report no GPUs without a tool", async () => {
    await plant({});
    expect(await reader().read()).toMatchObject({ gpus: [], unknown: [] });
  });
});
