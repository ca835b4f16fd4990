import {
  cancelDrain,
  changeLabels,
  changeMembership,
  cordon,
  type DrainConditions,
  drainNode,
  type Node,
  type NodeDecision,
  uncordon,
} from "@rollcall/domain";
import { getDrain, lockNodes, type Store, saveNodeEffects, storeTimeMs } from "@rollcall/store";

const CONDITIONS: DrainConditions = {
  ...{ deadlineMs: 3_600_000, force: false, ignoreDaemons: false, keepIneligible: false, maxParallel: 0 },
};

/** Operators' actions on nodes, like those of the admin service, but using only the store. */
export class Operators {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  cordon(nodeId: string): Promise<void> {
    return this.#decide(nodeId, (node, atMs) => cordon(node, by(atMs)));
  }

  async uncordon(nodeId: string): Promise<void> {
    const drain = await getDrain(this.#store.db, nodeId);
    await this.#decide(nodeId, (node, atMs) => uncordon(node, by(atMs), drain));
  }

  membership(nodeId: string, kind: "approve" | "reject" | "delete"): Promise<void> {
    return this.#decide(nodeId, (node, atMs) => changeMembership(node, { kind }, by(atMs)));
  }

  label(nodeId: string, key: string, value: string): Promise<void> {
    const change = { set: { [key]: value }, remove: [] };
    return this.#decide(nodeId, (node, atMs) => changeLabels(node, change, by(atMs)));
  }

  async drain(nodeId: string, part: Partial<DrainConditions> = {}): Promise<void> {
    const drain = await getDrain(this.#store.db, nodeId);
    const order = { request: { ...CONDITIONS, ...part }, selection: "" };
    await this.#decide(nodeId, (node, atMs) => drainNode(node, order, by(atMs), drain));
  }

  async undrain(nodeId: string): Promise<void> {
    const drain = await getDrain(this.#store.db, nodeId);
    await this.#decide(nodeId, (node, atMs) => cancelDrain(node, by(atMs), drain));
  }

  async #decide(nodeId: string, decision: (node: Node, atMs: number) => NodeDecision): Promise<void> {
    await this.#store.change(async (tx) => {
      const [node] = await lockNodes(tx, [nodeId]);
      if (node === undefined) throw new Error(`there is no node ${nodeId}`);
      const decided = decision(node, await storeTimeMs(tx));
      if (!decided.ok) throw new Error(decided.refusal.message);
      await saveNodeEffects(tx, node, decided.effects);
      return { result: null, events: decided.events };
    });
  }
}

function by(atMs: number) {
  return { actor: "token:x", message: "as the test said", atMs };
}
