import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Whether pods can be created here. Only root can create them, and only with Debian's tools. */
export const canMakePods =
  process.getuid?.() === 0 &&
  ["ip", "nsenter", "unshare", "setpriv"].every((it) => spawnSync("sh", ["-c", `command -v ${it}`]).status === 0);

/** The network of a cluster: a bridge on this machine, and one network namespace for each pod. */
export interface PodNetwork {
  /** Add an address of this machine that pods can reach. */
  addAddress(): Promise<string>;
  /** Add the network of a new pod. */
  addPod(): Promise<{ readonly space: string; readonly address: string }>;
  close(): Promise<void>;
}

const FIRST_PREFIX = 78;
const MOST_PREFIXES = 10;
/**
 * A fixed MAC address for the bridge. Otherwise the bridge takes the lowest address of its pods, and after each
 * change existing pods cannot reach it for up to a minute.
 */
const BRIDGE_MAC = "02:00:0a:4e:00:01";
let networks = 0;

export async function makePodNetwork(): Promise<PodNetwork> {
  // Keep names unique within this process, because the kernel removes the links of a deleted network only later.
  networks += 1;
  const bridge = `rc${process.pid}n${networks}`;
  // Run one command at a time. Concurrent commands fail occasionally, and a pod without a network fails much later.
  let last: Promise<unknown> = Promise.resolve();
  const ip = (words: string) => {
    const done = last.then(() => run("ip", words.split(" ")));
    last = done.catch(() => {});
    return done;
  };
  // Avoid addresses that a killed run has left behind, because they would respond instead of this network.
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
