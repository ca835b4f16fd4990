import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errorCode } from "@rollcall/process";
import type { MemoryKill } from "../state/execution-state.ts";

const KERNEL_LOG = "/dev/kmsg";
const MOST_RECORD_BYTES = 8_192;

/** The maximum number of records to read. The kernel keeps about a megabyte, which hardly ever contains more. */
const MOST_RECORDS = 20_000;

/**
 * Find out from the kernel's log whether it killed a process of a container for running out of memory. Some engines do
 * not report this: with cgroups of version 1, podman's conmon records the kill where podman does not look.
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

/** Whether a record reports that a cgroup named after the container ran out of memory. */
export function isKillOf(record: string, containerId: string): boolean {
  const [, group = ""] = /oom-kill:.*\boom_memcg=([^,\s]*)/.exec(record) ?? [];
  return group.includes(containerId);
}

/** Read one record. Null at the end. */
async function readRecord(file: FileHandle): Promise<string | null> {
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MOST_RECORD_BYTES), 0, MOST_RECORD_BYTES, null);
    return bytesRead === 0 ? null : buffer.toString("utf8", 0, bytesRead);
  } catch (error) {
    // The record was overwritten in the meantime. The next read returns the oldest existing one.
    return errorCode(error) === "EPIPE" ? "" : null;
  }
}
