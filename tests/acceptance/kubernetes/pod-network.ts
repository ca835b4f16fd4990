import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether pods can be made here: by root, with Debian's tools. */
export const canMakePods =
  process.getuid?.() === 0 &&
  ["ip", "nsenter", "unshare", "setpriv"].every((it) => spawnSync("sh", ["-c", `command -v ${it}`]).status === 0);

/** The network of a cluster: a bridge on this machine, and a network of its own for each pod. */
export interface PodNetwork {
  /** An address of this machine that pods reach. */
  addAddress(): Promise<string>;
  /** The network of a new pod. */
  addPod(): Promise<{ readonly space: string; readonly address: string }>;
  close(): Promise<void>;
}

const FIRST_PREFIX = 78;
const MOST_PREFIXES = 10;
/**
 * The bridge's own. Without one it takes the lowest of its pods' each time, and then those that were there before
 * cannot reach it for up to a minute.
 */
const BRIDGE_MAC = "02:00:0a:4e:00:01";
let networks = 0;

/** Make the network. */
export async function makePodNetwork(): Promise<PodNetwork> {
  // The kernel removes the links of a deleted network later, so each network of this process has its own names.
  networks += 1;
  const bridge = `rc${process.pid}n${networks}`;
  // One at a time: two at once fail now and then, and a pod that is left without a network fails much later.
  let last: Promise<unknown> = Promise.resolve();
  const ip = (words: string) => {
    const done = last.then(() => run("ip", words.split(" ")));
    last = done.catch(() => {});
    return done;
  };
  // What a run that was killed has left behind would answer in this one's place.
  const { stdout: taken } = await ip("-4 -o addr show");
  const prefixes = Array.from({ length: MOST_PREFIXES }, (_, index) => `10.${FIRST_PREFIX + index}`);
  const prefix = prefixes.find((it) => !taken.includes(` ${it}.`));
  if (prefix === undefined) throw new Error(`${prefixes.join(", ")} are all taken: delete the links of earlier runs`);
  await ip(`link add ${bridge} address ${BRIDGE_MAC} type bridge`);
  await ip(`link set ${bridge} up`);
  await ip(`addr add ${prefix}.0.1/16 dev ${bridge}`);
  const spaces: string[] = [];
  let addresses = 1;
  return {
    addAddress: async () => {
      addresses += 1;
      const address = `${prefix}.0.${addresses}`;
      await ip(`addr add ${address}/32 dev ${bridge}`);
      return address;
    },
    addPod: async () => {
      const number = spaces.length + 1;
      const space = `${bridge}-${number}`;
      const address = `${prefix}.1.${number}`;
      spaces.push(space);
      await ip(`netns add ${space}`);
      const outside = `${bridge}p${number}`;
      await ip(`link add ${outside} type veth peer name eth0 netns ${space}`);
      await ip(`link set ${outside} master ${bridge} up`);
      await ip(`-n ${space} addr add ${address}/16 dev eth0`);
      for (const device of ["lo", "eth0"]) await ip(`-n ${space} link set ${device} up`);
      return { space, address };
    },
    close: async () => {
      for (const space of spaces) await ip(`netns delete ${space}`);
      await ip(`link delete ${bridge}`);
    },
  };
}
