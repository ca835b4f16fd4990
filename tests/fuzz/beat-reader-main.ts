// Reads bytes that are mutated towards blocks of the reader that nothing reached before; `make fuzz` runs it. A process
// of its own, since V8 counts all that it has loaded, and outside of jest there is little.
import { isDeepStrictEqual } from "node:util";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HeartbeatRequestSchema } from "../../libs/api/src/gen/rollcall/health/v1/health_pb.ts";
import type { readBeatFrame } from "../../services/health/src/stream/beat-reader.ts";
import { BlockCoverage } from "./block-coverage.ts";
import { damage } from "./damage.ts";
import { Dice } from "./dice.ts";
import { fuzzPlan } from "./plan.ts";

/** Without FUZZ. */
const SHORT_INPUTS = 100_000;
/** Inputs between two looks at what they have reached, which costs as much as many of them. */
const BATCH = 250;
const MOST_KEPT = 2_000;
/**
 * After so many that reached nothing new, coverage is left: while V8 counts it optimises nothing, and all takes ten
 * times as long.
 */
const QUIET_BATCHES = 12;

/** Where it begins: a Beat with every field, one with none, and a frame that is no Beat. */
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

/** What the generated code makes of it; null when nothing. */
function generated(bytes: Uint8Array): unknown {
  try {
    return fromBinary(HeartbeatRequestSchema, bytes);
  } catch {
    return null;
  }
}

/** What is wrong with how an input is read; null when nothing is. */
function faultIn(read: typeof readBeatFrame, bytes: Uint8Array): string | null {
  try {
    const beat = read(bytes);
    if (beat === null || isDeepStrictEqual(beat, generated(bytes))) return null;
    return "read otherwise than by the generated code";
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
  // As it is handed over by grpc-js: a view of its own.
  return new Uint8Array(bytes.subarray(0, 600));
}

async function main(): Promise<void> {
  const coverage = new BlockCoverage(["beat-reader.ts", "/wire/binary-encoding.js", "/wire/varint.js"]);
  const { readBeatFrame: read } = await import("../../services/health/src/stream/beat-reader.ts");
  const plan = fuzzPlan(SHORT_INPUTS, BATCH);
  const reached = new Set<string>();
  const kept: Uint8Array[] = [...SEEDS];
  /**
   * Keep those that reach what nothing reached before: read again in ever smaller groups, since to look costs as much
   * as to read many.
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
