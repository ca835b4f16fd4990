import { constants } from "node:fs";
import { access, open, readdir, readlink, statfs } from "node:fs/promises";
import { arch, availableParallelism, hostname, networkInterfaces, platform, release, totalmem } from "node:os";
import { basename, join } from "node:path";
import { errorCode } from "@rollcall/process";
import { createCommandRunner, type RunCommand } from "./run-command.ts";

interface FileSystemSize {
  readonly totalBytes: number;
  readonly usedBytes: number;
}

/** An address of a network interface, as the operating system reports it. */
export interface InterfaceAddress {
  readonly interfaceName: string;
  readonly address: string;
  /** The address with its prefix length, for example `10.0.0.7/24`. */
  readonly cidr: string;
  readonly mac: string;
  readonly internal: boolean;
}

/** The text of a file. If both members are absent, the file does not exist. */
export interface TriedText {
  readonly text?: string;
  readonly problem?: string;
}

/** Information that the operating system provides without reading a file. */
export interface SystemCalls {
  readonly platform: NodeJS.Platform;
  /** The instruction set as Node.js names it, for example `x64`. */
  readonly architecture: string;
  /** The kernel's release. */
  readonly kernel: string;
  hostname(): string;
  totalMemoryBytes(): number;
  /** Threads that this process can run on. */
  parallelism(): number;
  addresses(): readonly InterfaceAddress[];
}

/**
 * The machine that the agent describes: its files, its programs and its operating system.
 *
 * No method throws or rejects. Anything missing, unreadable or denied is `undefined` or empty, because many
 * machines lack a sensor.
 */
export interface Machine {
  readonly system: SystemCalls;
  readonly run: RunCommand;
  /** The text of a file without trailing white space; at most its first MiB. */
  readText(path: string): Promise<string | undefined>;
  /** Like readText(), with the reason if an existing file cannot be read, for example EACCES. */
  tryText(path: string): Promise<TriedText>;
  /** The names in a directory in code-point order. */
  listNames(path: string): Promise<readonly string[]>;
  /** Why a directory cannot be listed, for example EACCES; undefined if it can be, or if it does not exist. */
  problemOf(path: string): Promise<string | undefined>;
  /** The last part of a symbolic link's target, for example a driver's name. */
  linkName(path: string): Promise<string | undefined>;
  /** Whether this process can read and write the file. */
  canUse(path: string): Promise<boolean>;
  /** The size of the file system that contains a path. The path is not relative to the root. */
  fileSystemSize(path: string): Promise<FileSystemSize | undefined>;
}

/** The parts of a machine. The default of each part is that of this machine. */
export interface MachineOptions {
  /** The directory that stands for `/`. Default: `/`. */
  readonly root?: string;
  readonly run?: RunCommand;
  readonly system?: SystemCalls;
}

/** Maximum number of bytes to read. Files in /proc and /sys are shorter. */
const READ_LIMIT_BYTES = 1024 * 1024;

/** Create the view of this machine, or of a recorded one below another root. */
export function createMachine(options: MachineOptions = {}): Machine {
  const root = options.root ?? "/";
  const at = (path: string): string => join(root, path);
  return {
    system: options.system ?? systemCalls(),
    run: options.run ?? createCommandRunner(),
    readText: (path) => absentOnError(() => readStart(at(path))),
    tryText: async (path) => {
      try {
        return { text: await readStart(at(path)) };
      } catch (error) {
        return isMissing(error) ? {} : { problem: errorCode(error) ?? String(error) };
      }
    },
    listNames: async (path) => (await absentOnError(async () => (await readdir(at(path))).sort())) ?? [],
    problemOf: async (path) => {
      try {
        await readdir(at(path));
        return undefined;
      } catch (error) {
        return isMissing(error) ? undefined : (errorCode(error) ?? String(error));
      }
    },
    linkName: (path) => absentOnError(async () => basename(await readlink(at(path)))),
    canUse: async (path) =>
      (await absentOnError(async () => {
        await access(at(path), constants.R_OK | constants.W_OK);
        return true;
      })) ?? false,
    fileSystemSize: (path) =>
      absentOnError(async () => {
        const { blocks, bfree, bsize } = await statfs(path);
        return { totalBytes: blocks * bsize, usedBytes: (blocks - bfree) * bsize };
      }),
  };
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? "");
}

async function absentOnError<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch {
    // Treat every failure as a value that the machine does not provide, so that the report omits the value.
    return undefined;
  }
}

async function readStart(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    while (length < READ_LIMIT_BYTES) {
      // Read until the end, because the file sizes of procfs and sysfs are wrong.
      const { bytesRead, buffer } = await file.read(Buffer.alloc(16 * 1024), 0, 16 * 1024);
      if (bytesRead === 0) break;
      chunks.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
    }
    return Buffer.concat(chunks).toString("utf8").trimEnd();
  } finally {
    await file.close();
  }
}

function systemCalls(): SystemCalls {
  return {
    platform: platform(),
    architecture: arch(),
    kernel: release(),
    hostname,
    totalMemoryBytes: totalmem,
    parallelism: availableParallelism,
    addresses: listAddresses,
  };
}

function listAddresses(): readonly InterfaceAddress[] {
  try {
    return Object.entries(networkInterfaces()).flatMap(([interfaceName, addresses]) =>
      (addresses ?? []).map(({ address, cidr, mac, internal }) => ({
        interfaceName,
        address,
        cidr: cidr ?? address,
        mac,
        internal,
      })),
    );
  } catch {
    // Return no addresses if the call fails, because the process may not be allowed to open a netlink socket.
    return [];
  }
}
