import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errorCode } from "@rollcall/process";
import type { MemoryKill } from "../execution/execution-state.ts";

const KERNEL_LOG = "/dev/kmsg";
const MOST_RECORD_BYTES = 8_192;

/** The kernel keeps a megabyte or so of records, hardly ever shorter than this. */
const MOST_RECORDS = 20_000;

/**
 * See in the kernel's log whether it killed a process of a container for its memory. Some engines do not tell: podman's
 * conmon notes it, with cgroups of version 1, where podman does not look.
 */
export async function kernelKilled(containerId: string, path = KERNEL_LOG): Promise<MemoryKill> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return { kind: "unknown", why: `the kernel's log cannot be read: ${errorCode(error) ?? String(error)}` };
  }
  try {
    for (let count = 0; count < MOST_RECORDS; count += 1) {
      const record = await readRecord(file);
      if (record === null) return { kind: "no" };
      if (isKillOf(record, containerId)) return { kind: "yes" };
    }
    return { kind: "unknown", why: `the kernel's log has more than ${MOST_RECORDS} records` };
  } finally {
    await file.close();
  }
}

/** Whether a record says that a cgroup which is named after the container ran out of memory. */
export function isKillOf(record: string, containerId: string): boolean {
  const [, group = ""] = /oom-kill:.*\boom_memcg=([^,\s]*)/.exec(record) ?? [];
  return group.includes(containerId);
}

/** Each read gives one record. Null at the end. */
async function readRecord(file: FileHandle): Promise<string | null> {
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MOST_RECORD_BYTES), 0, MOST_RECORD_BYTES, null);
    return bytesRead === 0 ? null : buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    // The record was overwritten meanwhile; the next read has the oldest one that is there.
    return errorCode(error) === "EPIPE" ? "" : null;
  }
}
