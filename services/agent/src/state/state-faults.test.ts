import { describe, expect, it } from "@jest/globals";
import { keyFingerprint } from "@rollcall/identity";
import { silentLogger } from "@rollcall/process";
import { failOnceAtEachCall, type Ports, stopAtEachCall } from "@rollcall/testkit/faults";
import { MemoryFiles } from "@rollcall/testkit/memory-files";
import { NodeKeys } from "./node-keys.ts";
import { openStateDirectory } from "./state-directory.ts";

const PATH = "/agent";
const PLACE = { nodeId: "node-1", clusterId: "cluster-1", healthEndpoints: ["health:7701"] };

/** An agent's disk, and what the control plane knows about the node's keys. */
class World {
  readonly files = new MemoryFiles();
  current = "";
  next: string | null = null;
  rotations = 0;

  /** Prove a key, as each session does. The first use of the next key completes a rotation. */
  accepts(fingerprint: string): boolean {
    if (this.current === "") this.current = fingerprint;
    if (fingerprint === this.next) {
      this.current = fingerprint;
      this.next = null;
      this.rotations += 1;
    }
    return fingerprint === this.current;
  }
}

function open(world: World, ports: Ports) {
  return openStateDirectory(PATH, ports.wrap("files", world.files, { opens: ["open"] }));
}

/** Open sessions until the node has its second key, as far as that has not happened yet. */
async function rotate(world: World, ports: Ports): Promise<NodeKeys> {
  const state = await ports.attempt(() => open(world, ports));
  const keys = await ports.attempt(() => NodeKeys.load(state, silentLogger));
  for (let session = 0; session < 4; session += 1) {
    const used = keys.toUse();
    if (world.accepts(keyFingerprint(used.publicKey))) await keys.accepted(used);
    else expect(keys.refused(used)).toBe(true);
    const sentinel = { ...PLACE, keyFingerprint: keys.fingerprint };
    if ((await state.readSentinel().catch(() => undefined)) === undefined) {
      await ports.attempt(() => state.writeSentinel(sentinel));
    }
    if (session > 0 || world.rotations > 0) continue;
    const next = await ports.attempt(() => keys.prepareNext());
    world.next = keyFingerprint(next.publicKey);
    await keys.answered({ current: world.current, next: world.next });
  }
  expect([keys.phase, keys.fingerprint, world.rotations]).toEqual(["settled", world.current, 1]);
  expect((await ports.attempt(() => state.readSentinel()))?.keyFingerprint).toBe(keys.fingerprint);
  return keys;
}

describe("the identity of an agent", () => {
  it("should survive one failure of any call to the disk, and finish a rotation", async () => {
    const calls = await failOnceAtEachCall(async (ports) => {
      const world = new World();
      const keys = await rotate(world, ports);
      const left = world.files.paths.filter((path) => !(ports.failed === "files.rm" && path.endsWith(".tmp")));
      expect(left).toEqual([`${PATH}/node-key.pem`, `${PATH}/sentinel.json`]);
      const next = await NodeKeys.load(await openStateDirectory(PATH, world.files), silentLogger);
      expect(next.fingerprint).toBe(keys.fingerprint);
    });
    expect(calls).toEqual(expect.arrayContaining(["files.link", "files.rename", "files.open.sync"]));
  });

  it.each(["stop", "power failure"])("should survive a %s before any call to the disk", async (end) => {
    await stopAtEachCall({
      world: async () => new World(),
      life: async (world, ports) => {
        if (end === "power failure") world.files.failPower();
        await rotate(world, ports);
      },
      check: async (world) => {
        const keys = await NodeKeys.load(await openStateDirectory(PATH, world.files), silentLogger);
        expect(keys.fingerprint).toBe(world.current);
        expect(keys.phase).toBe("settled");
      },
    });
  });
});
