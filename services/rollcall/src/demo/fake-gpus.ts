import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DemoNode } from "./demo-nodes.ts";

/**
 * Write a program `nvidia-smi` that prints imaginary GPUs with changing usage. Returns the folder for the agent's
 * PATH.
 */
export async function writeFakeGpus(folder: string, { name, gpus }: DemoNode): Promise<string> {
  const bin = join(folder, "bin");
  await mkdir(bin, { recursive: true });
  const lines = Array.from({ length: gpus?.count ?? 0 }, (_, index) => {
    const id = `${Buffer.from(`${name}-${index}`).toString("hex")}0000000000`.slice(0, 12);
    const uuid = `GPU-00000000-0000-4000-8000-${id}`;
    const facts = `${index}, ${gpus?.model}, ${uuid}, 570.86.10, 00000000:${String(index + 1).padStart(2, "0")}:00.0`;
    const total = gpus?.memoryMib ?? 0;
    const usage = `$((60 + ($(date +%s) * ${7 + index}) % 35)), ${Math.round(total * 0.7)}, ${total}, ${58 + index}`;
    return [
      `  *driver_version*mig*) echo "${facts}, ${total}, Disabled" ;;`,
      `  *driver_version*) echo "${facts}, ${total}" ;;`,
      `  *utilization*) echo "${index}, ${usage}" ;;`,
    ].join("\n");
  });
  const cases = lines.map((line) => `case "$1" in\n${line}\nesac`);
  const program = join(bin, "nvidia-smi");
  await writeFile(program, ["#!/bin/sh", "# Prints GPUs that do not exist, for the demo.", ...cases, ""].join("\n"));
  await chmod(program, 0o755);
  return bin;
}
