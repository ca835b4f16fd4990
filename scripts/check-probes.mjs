// Check the probes of this machine against its real nvidia-smi: `make probes`. It takes a minute, and does nothing on a
// machine without nvidia-smi. Small scripts in front of the real tool simulate a tool that is slow, hangs or fails.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createFactsReader } from "../services/agent/src/facts/facts-reader.ts";
import { hasDeviceOf } from "../services/agent/src/facts/pci.ts";
import { createMachine } from "../services/agent/src/machine/machine.ts";
import { createUsageSampler } from "../services/agent/src/usage/usage-sampler.ts";

/** The longest time that the tool usually takes on a busy driver, in seconds. */
const SLOW_SECONDS = 8;
const LONGEST_AGE_MS = 60_000;

const real = findTool();
if (real === null) {
  say("nvidia-smi is not installed here: there is nothing to check");
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), "rollcall-probes-"));
const path = process.env.PATH;
const began = Date.now();
try {
  const listed = execFileSync(real, ["-L"], { encoding: "utf8" });
  const ids = [...listed.matchAll(/^GPU \d+: .*\(UUID: (GPU-[^)]+)\)/gm)].map(([, id]) => id);
  say(`nvidia-smi lists ${ids.length} GPUs`);

  const facts = createFactsReader(createMachine(), folder);
  const first = await facts.read();
  const uuids = first.gpus.filter(({ vendor }) => vendor === "NVIDIA").map(({ uuid }) => uuid);
  assert.deepEqual(uuids, ids, "the GPUs in the facts differ from those of nvidia-smi -L");
  assert.deepEqual(first.unknown, [], "facts are unknown");
  for (const { index, name, memoryMib, driverVersion, pciAddress, unusable } of first.gpus) {
    const details = { name, memoryMib, driverVersion, pciAddress };
    for (const [key, value] of Object.entries(details)) assert.ok(value, `GPU ${index} has no ${key}`);
    say(`GPU ${index}: ${name}, ${memoryMib} MiB, ${pciAddress}${unusable === "" ? "" : `, unusable: ${unusable}`}`);
  }

  const sampler = createUsageSampler({
    machine: createMachine(),
    stateDirectory: folder,
    nowMs: () => performance.now(),
  });
  await sampler.refresh();
  assert.equal(sampler.latest(LONGEST_AGE_MS).cpuPercent, undefined, "the first sample contains a share of CPU time");
  await sampler.refresh();
  const usage = sampler.latest(LONGEST_AGE_MS);
  assert.ok(usage.cpuPercent !== undefined, "the second sample contains no share of CPU time");
  assert.equal(usage.gpusUnknown, false, "the GPUs' usage is unknown");
  assert.equal(usage.gpus.length, first.gpus.length, "the GPUs in the usage differ from those in the facts");
  assert.ok(usage.memory !== undefined && usage.disk !== undefined, "memory or disk is unknown");

  await inFront(`sleep ${SLOW_SECONDS}; exec ${real} "$@"`, async (slow) => {
    assert.deepEqual((await slow.read()).gpus, first.gpus, "a slow nvidia-smi changes the GPUs");
  });
  // Whether the bus has a device. If it has none, it is correct for the tool to fail or to list none.
  const isOnBus = await hasDeviceOf(createMachine(), "nvidia");
  const wrong = [
    ["fails", "echo 'NVIDIA-SMI has failed'; exit 9"],
    ["names none", "echo 'No devices were found'; exit 6"],
  ];
  for (const [what, script] of [
    ...(isOnBus ? wrong : []),
    ["hangs", "exec sleep 600"],
    ["hangs in a child process", `sleep 600 & echo $! >> ${join(folder, "children")}; wait`],
  ]) {
    await inFront(script, async (broken) => {
      const usageUnknown = what.startsWith("hangs") ? usageIsUnknown(what) : undefined;
      const { gpus, unknown } = await broken.read();
      assert.deepEqual(gpus, first.gpus, `the GPUs are gone when nvidia-smi ${what}`);
      assert.deepEqual(
        unknown.map(({ fact }) => fact),
        ["gpus"],
        `the GPUs are known when nvidia-smi ${what}`,
      );
      await usageUnknown;
    });
    say(`nvidia-smi ${what}: the GPUs are unknown, and the last known ones are shown`);
  }
  const children = readFileSync(join(folder, "children"), "utf8").trim().split("\n");
  // Wait, because on a busy machine a killed process takes some time to end.
  for (let tries = 0; tries < 100 && children.some(isAlive); tries += 1) await delay(100);
  assert.ok(children.length > 0 && !children.some(isAlive), "what nvidia-smi started is still running");
  say(`all probes agree with nvidia-smi (${Math.round((Date.now() - began) / 1_000)} s)`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Check that an agent whose nvidia-smi hangs reports everything but its GPUs. */
async function usageIsUnknown(what) {
  const stuck = createUsageSampler({
    machine: createMachine(),
    stateDirectory: folder,
    nowMs: () => performance.now(),
  });
  await stuck.refresh();
  const { gpusUnknown, gpus, memory } = stuck.latest(LONGEST_AGE_MS);
  assert.deepEqual([gpusUnknown, gpus], [true, []], `the GPUs' usage is known when nvidia-smi ${what}`);
  assert.ok(memory !== undefined, `memory is unknown when nvidia-smi ${what}`);
}

/** A zombie counts as ended, because its new parent process has yet to reap it. */
function isAlive(pid) {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

function say(line) {
  process.stdout.write(`${line}\n`);
}

/** Put a script before nvidia-smi in the PATH, and read the facts as a newly started agent does. */
async function inFront(script, check) {
  const tools = mkdtempSync(join(folder, "tools-"));
  writeFileSync(join(tools, "nvidia-smi"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(tools, "nvidia-smi"), 0o755);
  process.env.PATH = `${tools}:${path}`;
  try {
    await check(createFactsReader(createMachine(), folder));
  } finally {
    process.env.PATH = path;
  }
}

function findTool() {
  try {
    return execFileSync("sh", ["-c", "command -v nvidia-smi"], { encoding: "utf8" }).trim();
  } catch {
    return null;
  }
}
