// Fuzzes the reader of Beats: mutates inputs in order to reach blocks of code that no input has reached before.
// `make fuzz` runs it. It is a separate process, because V8 counts all loaded code and jest loads a lot.
import { isDeepStrictEqual } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HeartbeatRequestSchema } from "../../libs/api/src/gen/rollcall/health/v1/health_pb.ts";
import type { readBeatFrame } from "../../services/health/src/stream/beat-reader.ts";
import { BlockCoverage } from "./block-coverage.ts";
import { damage } from "./damage.ts";
import { Dice } from "./dice.ts";
import { fuzzPlan } from "./plan.ts";

/** The number of inputs when FUZZ is not set. */
const SHORT_INPUTS = 100_000;
/** The number of inputs between two reads of the coverage. One read takes as long as many inputs. */
const BATCH = 250;
const MOST_KEPT = 2_000;
/**
 * The number of batches without anything new after which coverage is switched off. While V8 counts, it does not
 * optimize, and everything takes ten times as long.
 */
const QUIET_BATCHES = 12;

/** The initial inputs: a Beat with every field, an empty Beat, and a frame that is not a Beat. */
const SEEDS: readonly Uint8Array[] = [
  frame({
    sequence: 300,
    agentTimeMs: -1n,
    settingsGeneration: 7,
    usage: {
      cpuPercent: 12.5,
      memoryUsedMib: 1,
      memoryTotalMib: 2 ** 32 - 1,
      diskUsedMib: 3,
      diskTotalMib: 4,
      temperatureAverageCelsius: 40,
      temperatureMaxCelsius: 50,
      gpus: [
        { index: 1, utilizationPercent: 5, memoryUsedMib: 6, memoryTotalMib: 7 },
        { index: 2, temperatureCelsius: 60 },
      ],
      numaNodes: [{ id: 1, cpuPercent: 8, memoryUsedMib: 9, memoryTotalMib: 10 }],
    },
  }),
  frame({}),
  toBinary(
    HeartbeatRequestSchema,
    create(HeartbeatRequestSchema, { frame: { case: "goodbye", value: { reason: "x" } } }),
  ),
];

function frame(value: object): Uint8Array {
  const request = create(HeartbeatRequestSchema, { frame: { case: "beat", value } });
  return toBinary(HeartbeatRequestSchema, request);
}

/** Decode an input with the generated code. Returns null if that fails. */
function generated(bytes: Uint8Array): unknown {
  try {
    return fromBinary(HeartbeatRequestSchema, bytes);
  } catch {
    return null;
  }
}

/** Describe how the reader handles an input wrongly. Returns null if the reader handles it correctly. */
function faultIn(read: typeof readBeatFrame, bytes: Uint8Array): string | null {
  try {
    const beat = read(bytes);
    if (beat === null || isDeepStrictEqual(beat, generated(bytes))) return null;
    return "differs from what the generated code reads";
  } catch (error) {
    return `thrown: ${String(error)}`;
  }
}

function mutated(kept: readonly Uint8Array[], dice: Dice): Uint8Array {
  let bytes: Uint8Array = dice.pick(kept);
  for (let times = dice.int(1, 3); times > 0; times -= 1) {
    if (dice.chance(0.15)) {
      const other = dice.pick(kept);
      const cut = dice.int(0, bytes.length);
      bytes = Buffer.concat([bytes.subarray(0, cut), other.subarray(dice.int(0, other.length))]);
    } else bytes = damage(bytes, dice);
  }
  // Pass a separate Uint8Array, as grpc-js does.
  return new Uint8Array(bytes.subarray(0, 600));
}

async function main(): Promise<void> {
  const coverage = new BlockCoverage(["beat-reader.ts", "/wire/binary-encoding.js", "/wire/varint.js"]);
  const { readBeatFrame: read } = await import("../../services/health/src/stream/beat-reader.ts");
  const plan = fuzzPlan(SHORT_INPUTS, BATCH);
  const reached = new Set<string>();
  const kept: Uint8Array[] = [...SEEDS];
  /**
   * Keep inputs that reach new blocks. To find them, repeat a batch in ever smaller groups, because one read of the
   * coverage takes as long as many inputs.
   */
  const keepNew = (tried: readonly Uint8Array[]): void => {
    const fresh = coverage.take().filter((block) => !reached.has(block));
    if (fresh.length === 0 || kept.length >= MOST_KEPT) return;
    const [only] = tried;
    if (tried.length === 1 && only !== undefined) {
      for (const block of fresh) reached.add(block);
      kept.push(only);
      return;
    }
    const middle = Math.ceil(tried.length / 2);
    for (const half of [tried.slice(0, middle), tried.slice(middle)]) {
      for (const bytes of half) read(bytes);
      keepNew(half);
    }
  };
  const check = (bytes: Uint8Array): void => {
    const fault = faultIn(read, bytes);
    if (fault !== null) throw new Error(`${fault}: ${Buffer.from(bytes).toString("hex")}`);
  };
  for (const seed of SEEDS) check(seed);
  for (const block of coverage.take()) reached.add(block);
  let inputs = 0;
  let quietBatches = 0;
  for (let batch = 0; inputs < plan.until && performance.now() < plan.endMs; batch += 1) {
    const tried = Array.from({ length: BATCH }, (_, index) =>
      mutated(kept, new Dice(plan.seed, batch * BATCH + index)),
    );
    for (const bytes of tried) check(bytes);
    inputs += tried.length;
    if (quietBatches > QUIET_BATCHES) continue;
    const before = kept.length;
    keepNew(tried);
    quietBatches = kept.length > before ? 0 : quietBatches + 1;
    if (quietBatches > QUIET_BATCHES) coverage.stop();
  }
  const found = kept.length - SEEDS.length;
  process.stdout.write(
    `${inputs} inputs of seed ${plan.seed} for the reader of Beats: none read otherwise; ${reached.size} ` +
      `blocks reached, ${found} inputs kept\n`,
  );
}

await main();
