import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errorCode } from "@rollcall/process";

const KERNEL_LOG = "/dev/kmsg";
const MOST_RECORD_BYTES = 8_192;

/** The kernel keeps a megabyte or so of records, hardly ever shorter than this. */
const MOST_RECORDS = 20_000;

/**
 * See in the kernel's log whether it killed a process of a container for its memory. Some engines do not tell: podman's
 * conmon notes it, with cgroups of version 1, where podman does not look. False where the log cannot be read.
 */
export async function kernelKilled(containerId: string): Promise<boolean> {
  const file = await open(KERNEL_LOG, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => null);
  if (file === null) return false;
  try {
    for (let count = 0; count < MOST_RECORDS; count += 1) {
      const record = await readRecord(file);
      if (record === null) return false;
      if (isKillOf(record, containerId)) return true;
    }
    return false;
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
